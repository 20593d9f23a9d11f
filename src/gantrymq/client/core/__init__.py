"""What all producers and consumers with one client id share.

Name server addresses, routes, connections, heartbeats, options and errors. Nothing here sends or
reads messages.
"""
