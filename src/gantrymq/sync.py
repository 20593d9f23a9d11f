"""The blocking face of the client."""
