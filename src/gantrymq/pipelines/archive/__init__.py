"""Topics into a lakehouse table, exactly once into each table."""
