"""Every endpoint of every subject."""

from typing import Final

from gantrymq.console.api import (
    account,
    alarms,
    brokers,
    group_members,
    group_progress,
    groups,
    jobs,
    kept_lists,
    letter_jobs,
    letters,
    message,
    messages,
    overview,
    samples,
    topic_work,
    topics,
    waiting,
)
from gantrymq.console.api.endpoint import Endpoint
from gantrymq.console.api.pipelines import overview as pipelines_overview
from gantrymq.console.api.pipelines import work as pipelines_work

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint
    for subject in (
        account,
        pipelines_overview,
        pipelines_work,
        overview,
        brokers,
        topics,
        topic_work,
        samples,
        alarms,
        groups,
        group_progress,
        group_members,
        jobs,
        messages,
        message,
        kept_lists,
        letters,
        letter_jobs,
        waiting,
    )
    for endpoint in subject.TABLE.endpoints
)
