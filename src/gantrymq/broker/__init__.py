"""The broker: stores messages, answers pulls and pops, and keeps the progress of groups.

`app` starts and stops it, `parts/` builds it, `routes` says which handler answers which request
code, `handlers/` are the conversations. Each feature has a folder (`waiting/`, `transactions/`,
`pop/`, `publishing/`, `subscriptions/`); `tables/` are files and `settings/` the configuration. How
messages lie on disk is the business of `store`.
"""
