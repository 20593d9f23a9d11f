"""Holds a change to the speed of an older commit: both are measured in one run, in turns.

`source` brings the older commit beside this one, `works` are the loads, `verdict` compares. Trees
share the virtual environment, so what they depend on is the same.

python -m bench.guard --base COMMIT
"""
