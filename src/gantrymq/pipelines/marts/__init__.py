"""Marts: what a report shows, each a function from frames to a frame, with checks on the result."""
