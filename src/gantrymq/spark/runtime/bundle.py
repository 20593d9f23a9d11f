"""What executors of a cluster need, in one file that Spark hands to them.

A `.zip` holds this package alone, for executors that have numpy, pyarrow and msgspec. A `.tar.gz`
holds all of it, for executors that have nothing but Python; it fits machines of this kind and
this version of Python. Neither contains Spark.
"""

import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import gantrymq
from gantrymq.base.errors import ConfigError

PACKED: Final = ("msgspec", "numpy", "pyarrow")
PACKED_IF_THERE: Final = ("lz4", "zstandard")
"""Only bodies of some Java clients need these; who reads such has installed them."""

LEFT_OUT: Final = frozenset({"tests", "include", "__pycache__", "src"})
FOLDER: Final = "gantrymq-bundle"
"""The name under which executors unpack a `.tar.gz`, next to where they run."""

_SUFFIXES: Final = (".zip", ".tar.gz", ".tgz")


def make_bundle(into: Path) -> None:
    """Write the bundle; the ending of its name chooses the kind."""
    _check_suffix(into)
    fresh = into.with_name(f".{into.name}.part")
    try:
        if into.suffix == ".zip":
            _write_zip(fresh)
        else:
            _write_tar(fresh)
        fresh.replace(into)
    finally:
        fresh.unlink(missing_ok=True)


def bundle_settings(bundle: str) -> dict[str, str]:
    """The settings of a session whose executors use the file."""
    _check_suffix(Path(bundle))
    if bundle.endswith(".zip"):
        return {"spark.submit.pyFiles": bundle}
    return {"spark.archives": f"{bundle}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def _check_suffix(file: Path) -> None:
    if not file.name.endswith(_SUFFIXES):
        raise ConfigError(
            f"{file.name} must end in .zip (this package alone) or .tar.gz (with what it needs)"
        )


def _write_zip(into: Path) -> None:
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, name in _own_files():
            if file.suffix in (".py", ".typed"):
                archive.write(file, name)


def _write_tar(into: Path) -> None:
    packed = [*PACKED, *filter(_is_installed, PACKED_IF_THERE)]
    with tarfile.open(into, "w:gz", compresslevel=3) as archive:
        for file, name in _own_files():
            archive.add(file, name)
        for package in packed:
            for file, name in _files_of(package):
                archive.add(file, name)


def _own_files() -> Iterator[tuple[Path, str]]:
    """This package, and the one by which Spark finds it."""
    root = Path(gantrymq.__file__).parent.parent
    for package in ("gantrymq", "pyspark_gantrymq"):
        for file in sorted((root / package).rglob("*")):
            if file.suffix in (".py", ".so", ".typed"):
                yield file, str(file.relative_to(root))


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _files_of(package: str) -> Iterator[tuple[Path, str]]:
    """The files of an installed package that `pip` listed, without those never imported."""
    found = distribution(package)
    if found.files is None:
        raise ConfigError(f"nobody knows which files {package} has: install it with pip")
    for each in found.files:
        file = Path(str(found.locate_file(each)))
        outside = each.parts[0] == ".." or not file.is_file()
        if not outside and not LEFT_OUT.intersection(each.parts[1:-1]):
            yield file, str(each)
