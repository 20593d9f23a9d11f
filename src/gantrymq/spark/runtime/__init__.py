"""Spark sessions and what they run on: Java, executors, bundles, start-up speed, Python tasks."""
