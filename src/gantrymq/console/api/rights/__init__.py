"""The access control of a cluster's brokers: what each has, where they differ, and changes of all.

    members          what every broker says of its users, policies and accounts
    changes          one change at all brokers that it is about
    overview         which kind of access control each broker has
    users            the users of RocketMQ 5.3, with their policies
    user_changes     users created, changed, copied and deleted
    policies         an entry of a user's policies put or removed
    accounts         the access keys of 4.9's access files, and white lists
    account_changes  these changed
    explain          which rule decides

Who may come into the console itself is the matter of `console/access`.
"""
