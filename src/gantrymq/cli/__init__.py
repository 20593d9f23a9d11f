"""The commands of `gantry`, `mqnamesrv` and `mqbroker`. A command parses, calls and prints."""
