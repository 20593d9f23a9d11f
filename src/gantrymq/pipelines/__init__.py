"""Data work on topics with Spark: archive, replay, analytics, audit."""
