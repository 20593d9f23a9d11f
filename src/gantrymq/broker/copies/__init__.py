"""What master and slave do besides copying the log (`replication/ha`).

`master_link` is a slave's connection to its master's remoting port, `table_copy` copies topics,
groups and offsets over it, `log_comparison`
finds where two logs part, `known_slaves` tells a master whose acknowledgements count.
"""
