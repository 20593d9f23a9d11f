"""Named workloads: what GantryMQ promises about speed, measured.

`python -m bench` runs them all, prints a table and writes the figures as JSON below `results/`.
"""
