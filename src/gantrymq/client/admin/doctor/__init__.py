"""Finds what is wrong with a cluster or a machine, and says how to mend it.

`collect.py` takes one snapshot of the cluster with few requests. The checks are functions from a
snapshot to findings and do nothing else: those about servers, topics and groups have a module each,
`checks.py` lists them. `machine.py` reads the machine that it runs on, `machine_checks.py` judges.
"""
