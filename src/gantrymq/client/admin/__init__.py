"""Administration: what an operator asks of brokers and name servers.

Topics, groups, offsets, lag, dead letters, searches, and the history of a message. The command line
and the console only parse arguments and print results.
"""
