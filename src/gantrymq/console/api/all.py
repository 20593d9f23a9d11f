"""Every endpoint of every subject."""

from typing import Final

from gantrymq.console.api import account, jobs, overview, topic_work, topics
from gantrymq.console.api.endpoint import Endpoint

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint
    for subject in (account, overview, topics, topic_work, jobs)
    for endpoint in subject.TABLE.endpoints
)
