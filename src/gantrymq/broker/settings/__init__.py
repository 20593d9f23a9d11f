"""The broker's settings: every key, its limits, and changes while it runs."""
