"""Consumer groups: progress and lag, members, settings, resets."""
