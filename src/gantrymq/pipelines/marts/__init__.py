"""Marts: the tables of a report, each a function from frames to a frame, with checks."""
