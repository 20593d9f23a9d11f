"""Transactions: half messages, the decisions about them, and asking for those that are missing."""
