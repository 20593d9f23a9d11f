"""Transactions: half messages, the decisions about them, and check-backs."""
