"""Reports: tables, pictures and a page about what happened in topics and groups."""
