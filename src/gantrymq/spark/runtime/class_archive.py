"""The class archive: Java's classes, loaded once and kept in a file, so that sessions start faster.

The file fits one Java and one set of jars; its name says which. A session takes it if it is there.
It is optional, so a session ignores a file that cannot be used.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.spark.runtime.java import Java, cache_folder, find_java

MAKE_SECONDS_MAX: Final = 300.0


def archive_file(java: Java, cache: Path | None = None) -> Path:
    """The path of the file for this Java and the installed Spark, whether it exists or not."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    parts = [str(java.home), java.version, str(jars)]
    parts += sorted(f"{jar.name} {jar.stat().st_size}" for jar in jars.glob("*.jar"))
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return (cache or cache_folder()) / f"spark-{key}.jsa"


def options_for(archive: Path) -> str:
    """Java's options that use the file; Java silently ignores a file that does not fit."""
    if not archive.is_file():
        return ""
    return f'-XX:SharedArchiveFile="{archive}" -Xshare:auto -Xlog:disable -Xlog:all=error:stderr'


def build_class_archive() -> Path:
    """Make the file if it does not exist: about 30 s of a Spark session that loads classes."""
    java = find_java()
    archive = archive_file(java)
    if archive.is_file():
        return archive
    fresh = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gantrymq.spark.runtime.class_loading", str(fresh)],
            capture_output=True,
            text=True,
            timeout=MAKE_SECONDS_MAX,
            check=False,
        )
        if not _is_whole(fresh, java):
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise GantryError(f"could not make {archive}: {said}")
        fresh.replace(archive)
    except subprocess.TimeoutExpired as error:
        raise GantryError(f"could not make {archive} in {MAKE_SECONDS_MAX:.0f} s") from error
    finally:
        fresh.unlink(missing_ok=True)
    for old in archive.parent.glob("spark-*.jsa"):
        if old != archive:
            old.unlink(missing_ok=True)
    return archive


def _is_whole(archive: Path, java: Java) -> bool:
    """Whether Java can use the file, after a sync: a torn file makes Java crash."""
    if not archive.is_file():
        return False
    with archive.open("rb") as file:
        os.fsync(file.fileno())
    check = [
        str(java.home / "bin" / "java"),
        f"-XX:SharedArchiveFile={archive}",
        "-Xshare:auto",
        "-XX:+VerifySharedSpaces",
        "-XX:ErrorFile=/dev/null",
        "-version",
    ]
    done = subprocess.run(check, capture_output=True, timeout=MAKE_SECONDS_MAX, check=False)
    return done.returncode == 0
