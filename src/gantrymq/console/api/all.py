"""Every endpoint of every subject."""

from typing import Final

from gantrymq.console.api import account, overview
from gantrymq.console.api.endpoint import Endpoint

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint for subject in (account, overview) for endpoint in subject.TABLE.endpoints
)
