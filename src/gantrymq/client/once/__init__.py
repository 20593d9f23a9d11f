"""Effectively-once consuming: a store remembers finished work, and doubles are skipped."""
