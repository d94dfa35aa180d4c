"""What is asked of runs and drives: comparisons, trials of a change, explanations, the chance of
losing data."""
