"""Access control as RocketMQ 4.9 has it: who may send the request that has arrived.

`credentials`, `key_sources` and `signature` are the client's half and the server's: a key pair,
where it comes from, and what is signed with it. `addresses` and `accounts` are the rules,
`plain_acl` reads them from RocketMQ's `plain_acl.yml`, `rule_files` finds, watches and rewrites
those files. `rights` lists what each request code needs, and `guard` asks both of every request
before a handler sees it.
"""
