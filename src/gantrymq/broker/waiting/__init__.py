"""Waiting messages: delay levels, timers, and the redirect into system topics."""
