"""The consumers: `push`, `pull` (pull and lite pull) and `pop` (the simple consumer).

`membership` has the duties of a group member (rebalance, offsets, send-back), `queues` the process
queues and their pull loops, `handling` the calls of handlers. Administration of groups is in
`client.admin`.
"""
