"""What holds for every test."""

import signal

from hypothesis import settings

# Hypothesis may not judge how long an example takes: two cores are shared by many processes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell lets what it starts behind its back ignore Ctrl-C, and commands would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
