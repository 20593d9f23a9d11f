"""The compiled kernel. Everything else about the package is in pyproject.toml.

The extension is optional: without a C compiler the package installs all the same and runs on the
pure-Python twin of the kernel.
"""

from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("src/gantrymq/kernel")
SOURCE = KERNEL / "_fast.pyx"
PARTS = [str(KERNEL / name) for name in ("_fast.h", "_frames.pxi", "_records.pxi", "_pulled.pxi")]

extensions = []
if SOURCE.exists():
    extensions.append(
        Extension(
            "gantrymq.kernel._fast",
            [str(SOURCE)],
            depends=PARTS,
            extra_compile_args=["-O3"],
            libraries=["pthread"],
            optional=True,
        )
    )

setup(ext_modules=extensions)
