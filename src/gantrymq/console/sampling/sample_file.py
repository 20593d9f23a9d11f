"""The file of a cluster's samples: it is mapped, so that what was written outlives the process."""

import hashlib
import mmap
import os
from pathlib import Path
from typing import Final

from gantrymq.console.sampling.rings import SampleRings, size_of

FOLDER: Final = "samples"


class SampleFile:
    """The samples of one cluster, open."""

    def __init__(self, data: Path, cluster: str) -> None:
        folder = data / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        # Names of clusters may contain anything.
        digest = hashlib.sha256(cluster.encode()).hexdigest()[:24]
        file = os.open(folder / f"{digest}.ring", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size != size_of():
                os.ftruncate(file, 0)
                os.ftruncate(file, size_of())
            self._map = mmap.mmap(file, size_of())
        finally:
            os.close(file)
        self.rings = SampleRings(memoryview(self._map))

    def close(self) -> None:
        """Close the file; the operating system writes what is new."""
        self.rings.release()
        self._map.close()
