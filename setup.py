"""The compiled kernel. Everything else about the package is in pyproject.toml.

The extension is optional: without a C compiler the package installs all the same and runs on the
pure-Python twin of the kernel.
"""

from pathlib import Path

from setuptools import Extension, setup

SOURCE = "src/gantrymq/kernel/_fast.pyx"

extensions = []
if Path(SOURCE).exists():
    extensions.append(
        Extension(
            "gantrymq.kernel._fast",
            [SOURCE],
            extra_compile_args=["-O3"],
            libraries=["pthread"],
            optional=True,
        )
    )

setup(ext_modules=extensions)
