"""Access control as RocketMQ has it, of 4.9 and of 5.3: who may send the request that has arrived.

`credentials`, `key_sources` and `signature` are the client's half and the server's: a key pair,
where it comes from, and what is signed with it. `guard` asks the `rules` in force about every
request before a handler sees it.

Rules of 4.9: `addresses` and `accounts`, which `plain_acl` reads from RocketMQ's `plain_acl.yml`;
`rule_files` finds, watches and rewrites those files; `rights` lists what each request code needs,
and `account_rules` puts it together. Rules of 5.3: `users` and their `policies`, which `user_table`
keeps; `policy_needs` lists what each code needs, and `user_rules` puts it together.
"""
