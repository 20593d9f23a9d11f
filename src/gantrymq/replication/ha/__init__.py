"""Master-slave copy: RocketMQ's HA protocol.

`wire` has the bytes and `in_sync` the rules, both without I/O; `master` serves the HA port and
`slave` follows it. A Java broker can be at either end.
"""
