"""Transactions: half messages, the decisions about them, and check-backs.

`half_messages` is the table of those without a decision, `transaction_end` commits and rolls back,
`ops` stores decisions, `checker` and `check_back` ask producers. Half messages are stored by
`handlers/send.py`.
"""
