"""The Python that Spark starts for its workers, and whether this package is in it.

Without PYSPARK_PYTHON Spark takes the first `python3` on PATH. A program that is run by a virtual
environment's interpreter, with the environment not first on PATH, would fail in a worker with a
long stack trace: this is checked before anything is read.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import Any, Final

from gantrymq.base.errors import ConfigError

NEEDED: Final = ("gantrymq", "msgspec", "numpy", "pyarrow")
LOOK_SECONDS_MAX: Final = 20.0
WHAT_TO_SET: Final = (
    "set PYSPARK_PYTHON={python} in the environment before the session is made, or make it with "
    "gantrymq.spark.session(), which does"
)
_LOOK: Final = """
import json, sys
from importlib.util import find_spec
print(json.dumps([sys.version_info[:2], [n for n in sys.argv[1:] if find_spec(n) is None]]))
"""


def check_python(spark: Any) -> None:
    """Raise ConfigError if workers of this session could not load the data source.

    A session of Spark Connect has its workers elsewhere and is not checked.
    """
    context = getattr(spark, "_sc", None)
    chosen = getattr(context, "pythonExec", None)
    program = shutil.which(chosen) if chosen else None
    if program is None or os.path.abspath(program) == os.path.abspath(sys.executable):
        return
    wrong = what_is_wrong(program)
    if wrong:
        what = WHAT_TO_SET.format(python=sys.executable)
        raise ConfigError(f"Spark runs its workers with {program}, {wrong}: {what}")


def what_is_wrong(program: str) -> str:
    """Why workers cannot use a Python; empty if they can."""
    needed = [name for name in NEEDED if find_spec(name) is not None]
    try:
        told = subprocess.run(
            [program, "-c", _LOOK, *needed],
            capture_output=True,
            timeout=LOOK_SECONDS_MAX,
            check=True,
            text=True,
        )
        version, missing = json.loads(told.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""  # a program of the user's own, which starts Python in some way
    if missing:
        return f"which has no {' and no '.join(missing)}"
    if tuple(version) != sys.version_info[:2]:
        here = "{}.{}".format(*sys.version_info[:2])
        return f"which is Python {version[0]}.{version[1]} where this is {here}"
    return ""
