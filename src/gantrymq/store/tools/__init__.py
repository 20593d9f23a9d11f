"""What operators do with the folder of a store, without its broker.

`stat`, `verify` and `dump` read it, `repair` and `restore` write, `snapshot` copies it while a
broker may run, `dledger` reads logs of RocketMQ's raft groups. `gantry store` prints the results.
"""
