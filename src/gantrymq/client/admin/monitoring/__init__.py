"""A monitor that looks at all groups once a round, and what it tells."""
