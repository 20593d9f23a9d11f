"""Every endpoint of every subject."""

from typing import Final

from gantrymq.console.api import overview
from gantrymq.console.api.endpoint import Endpoint

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint for subject in (overview,) for endpoint in subject.TABLE.endpoints
)
