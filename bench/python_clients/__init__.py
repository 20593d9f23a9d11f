"""What a Python program gets from other messaging systems, beside what it gets from us.

`servers` starts each system on this machine. `library` says what is asked of a client library, and
the modules `with_*` do it, one library each; `driver` is the process in which one library does one
work, and `contenders` says who is compared.
"""
