"""A running member of a raft group: the rules of `replication/raft` with a log, files and links.

`identity` is who the members are, `wire` the bytes between them, `links` the connections, `files`
what a member must not forget, `member_disk` what it writes, `commit_gate` what the store asks
before it answers a send, `node` the driver that calls the core and does what it says, `opening` how
it begins.

How it goes. `node` is one task. It hands ticks and messages to the core, takes its `Ready` and
carries it out: state and epoch table to their files, bytes to the log, messages to the links. The
leader's writer does not wait for the task: it writes as on any broker and tells the node, which
sends the new bytes to all followers in the same turn of the loop. When a majority has them the
commit gate opens, and the store dispatches and answers.

Nothing here knows of topics or clients: `broker` watches `node.position`, and serves clients as a
master while the member leads, and as a slave while it follows.
"""
