"""Analysis of results: steady state, consistency, latency, attribution, comparison.

Nothing here draws, and nothing here asks whether a drive was simulated or real.
"""
