"""What consumers and tools read of a running store: by queue offset, log offset, time or key.

`reads` answers pulls and queries, `entry_filter` those with a condition on properties. Programs
that read the files of a store without its broker use `files/`.
"""
