"""The compiled kernel. Everything else about the package is in pyproject.toml.

The extension is optional: without a C compiler the package installs all the same and runs on the
pure-Python twin of the kernel.
"""

from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("src/gantrymq/kernel")
SOURCE = KERNEL / "_fast.pyx"
PARTS = sorted(map(str, [*KERNEL.glob("_*.h"), *KERNEL.glob("_*.pxi")]))

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
