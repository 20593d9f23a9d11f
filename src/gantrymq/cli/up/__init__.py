"""`gantry up`: a name server and brokers on one machine, each a process of its own.

`command` parses, `modes` has the brokers that run together and RocketMQ's deployment modes,
`processes` starts, watches and stops them.
"""
