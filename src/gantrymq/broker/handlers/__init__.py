"""The handlers of request codes, one file a subject. Each gets only the parts that it uses.

A handler parses, checks and answers; what goes on between requests is in the features' folders.
"""
