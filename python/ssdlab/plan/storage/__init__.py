"""Candidates of a purchase beside each other: what they do, how long they last, what they cost."""
