"""Offsets, ranges and stored records: what is fetched, decoded and filtered.

Used by the source and by the pipelines; knows nothing of Spark sessions.
"""
