"""Effectively-once consuming: work is remembered in a store, and doubles are left out."""
