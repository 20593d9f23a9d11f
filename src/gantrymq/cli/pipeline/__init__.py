"""The commands of `gantry pipeline`, a module each. They need Spark."""
