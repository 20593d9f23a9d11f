"""Makes a server profile itself: on its path only when a profile was asked for."""

import atexit
import cProfile
import os
import sys

target, program = os.environ.get("GANTRY_BENCH_PROFILE"), os.environ.get("GANTRY_BENCH_PROGRAM")
if target and program and any(program in argument for argument in sys.orig_argv):
    profile = cProfile.Profile()
    profile.enable()

    def finish(path: str) -> None:
        profile.disable()
        profile.dump_stats(path)

    atexit.register(finish, target)
