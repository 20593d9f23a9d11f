"""Every endpoint of every subject."""

from typing import Final

from gantrymq.console.api import (
    account,
    alarms,
    brokers,
    direct_consumption,
    group_members,
    group_progress,
    groups,
    jobs,
    kept_lists,
    letter_jobs,
    letters,
    logs,
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
from gantrymq.console.api.rights import account_changes as rights_account_changes
from gantrymq.console.api.rights import accounts as rights_accounts
from gantrymq.console.api.rights import explain as rights_explain
from gantrymq.console.api.rights import overview as rights_overview
from gantrymq.console.api.rights import policies as rights_policies
from gantrymq.console.api.rights import user_changes as rights_user_changes
from gantrymq.console.api.rights import users as rights_users

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint
    for subject in (
        account,
        logs,
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
        direct_consumption,
        kept_lists,
        letters,
        letter_jobs,
        waiting,
        rights_overview,
        rights_users,
        rights_user_changes,
        rights_policies,
        rights_accounts,
        rights_account_changes,
        rights_explain,
    )
    for endpoint in subject.TABLE.endpoints
)
