"""Audits: every record, queue entry and index entry of a store, checked against the others.

`scope` says what is checked and cuts it into tasks, `task` runs one, `whole` sums up; `walk` goes
through the log and over damage, `against_log`, `against_queues` and `against_index` compare. This
process runs the tasks, or Spark's workers do (`pipelines/audit`). Nothing here writes.
"""
