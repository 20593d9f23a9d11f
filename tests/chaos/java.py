"""The Java writer: built by the interop suite's toolchain, a process like any other client."""

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from chaos.network import Missing

INTEROP: Final = Path(__file__).parents[1] / "interop"
CLIENT: Final = "client-5.3"
TOOLS: Final = ("java", "mvn")


def build_writer(home: Path) -> list[str]:
    """The command that runs the writer; built first, if it is not built yet."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise Missing(f"the Java writer needs {', '.join(missing)}; --no-java runs without it")
    toolchain = _toolchain()
    toolchain.build_java()
    return [
        "java",
        "-Xmx64m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        f"-Duser.home={home}",
        f"-Drocketmq.client.logRoot={home}",
        "-cp",
        toolchain.java_class_path(CLIENT),
        "probe.Probe",
    ]


def _toolchain() -> Any:
    """Modules of that suite find each other by their folder, which is no package."""
    sys.path.append(str(INTEROP))
    return importlib.import_module("toolchain")
