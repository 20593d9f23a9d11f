"""Waiting messages: delay levels, timers, and the redirect into system topics.

Half messages wait, too, but for a decision and not for a time: they are in `transactions/`.
"""
