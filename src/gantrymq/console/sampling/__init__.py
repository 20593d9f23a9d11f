"""Rates and lag over time: what the console has seen of each cluster, in rings of fixed size."""
