"""From an append to a written record, its queue entry and its index keys.

`writer` encodes and writes all appends of a loop turn at once, `write_counts` counts them,
`dispatch` derives entries and keys from records, live and in recovery alike. Making bytes durable
is in `log/`.
"""
