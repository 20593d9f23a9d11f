"""The consumers: `push`, `pull` (pull and lite pull) and `pop` (the simple consumer).

`membership` is what a member of a group does, `queues` what it does with the queues it holds,
`handling` how handlers are called. Administration of groups is in `client.admin`.
"""
