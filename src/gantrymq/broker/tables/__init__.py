"""Tables that a broker keeps on disk: topics, groups, offsets, request modes."""
