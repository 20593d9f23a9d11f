"""The wire and record formats. No module here does I/O, waits or reads a clock.

A frame is a `command`; `codes` has the numbers, `headers/` the fields, `bodies` and the modules of
their subject (`pop`, `publishing`, `trace`, `waiting`) the bodies, in the JSON of `fastjson`.
`calls` declares each request once. A stored message is a `record` with `properties`. Hot loops over
the same bytes are in `kernel`.
"""
