"""Copies of the commit log on other brokers.

`ha/` has the copy of a master on its slaves, in RocketMQ's bytes; `raft/` the rules of a group that
elects its master. What brokers copy besides the log
(topics, groups, offsets) goes over the remoting port and lives in `broker/slave/`.
"""
