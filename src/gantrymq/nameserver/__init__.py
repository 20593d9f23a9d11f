"""The name server: an almost stateless route registry. `table` decides, `app` acts."""
