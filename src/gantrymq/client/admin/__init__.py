"""Everything that asks brokers and name servers as an operator does.

Topics, groups, offsets, lag, dead letters, searches, and the history of a message. The command line
and the console only parse and print what is found here.
"""
