"""The wire and record formats. No module here does I/O, waits or reads a clock."""
