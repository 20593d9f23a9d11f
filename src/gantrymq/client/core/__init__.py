"""What every producer and consumer of one client id shares.

Name servers and their addresses, routes, connections, heartbeats, options and errors. Nothing here
sends or reads messages.
"""
