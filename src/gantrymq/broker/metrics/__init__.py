"""The collectors of a broker's metrics: they turn what its parts count anyway into samples.

Nothing here runs unless somebody asks. A collector reads tables of the parts on the event loop, a
piece at a time; a table may change between two pieces, so each takes a list of its keys first.
"""
