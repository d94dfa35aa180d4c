"""Arrays of simulated drives: what they would do, beside one drive alone, and what to choose."""
