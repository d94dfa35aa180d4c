"""Twins: rigs fitted to measurements of a real drive, which then predict what was not measured."""
