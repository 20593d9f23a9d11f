"""Popping: messages are lent for a time, not read by a queue's owner."""
