"""The hot inner loops: a compiled module and its readable pure-Python twin.

Everybody imports from here. `GRADE` says which of the two is in use; `GANTRY_PURE=1` forces the
twin.
"""

from gantrymq.kernel.frames import cut_commands, pull_answer, send_answer

GRADE = "pure"

__all__ = ["GRADE", "cut_commands", "pull_answer", "send_answer"]
