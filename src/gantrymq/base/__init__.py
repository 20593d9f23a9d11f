"""General tools: the ports to disk, network and time, watermarks, settings, errors."""
