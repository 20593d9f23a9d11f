"""Audit: a whole store checked record by record, entry by entry, in parallel; nothing written."""
