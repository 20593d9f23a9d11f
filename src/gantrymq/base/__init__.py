"""Tools with no domain in them: the ports to the world, watermarks, settings, errors."""
