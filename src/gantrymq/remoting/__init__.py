"""Frames over asyncio: one connection class for both ends, one server."""
