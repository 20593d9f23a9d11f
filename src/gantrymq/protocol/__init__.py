"""Bytes and their meanings. Nothing here opens, waits, or asks for the time."""
