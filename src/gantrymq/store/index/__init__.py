"""The key index: which log offsets the messages with a key lie at.

`index_file` is one file, `key_index` all of them. Other programs read the same files by
`files/index_files.py`.
"""
