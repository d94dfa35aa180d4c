"""The protocol engine: runs a protocol's steps on a target, and goes on where it was stopped."""
