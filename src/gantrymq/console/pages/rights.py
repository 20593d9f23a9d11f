"""The access control of the cluster: its brokers, users, policies, and which rule decides."""

from typing import Final, Literal

from starlette.responses import Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.http import convert
from gantrymq.console.api.paging import LIMIT, Limit, Offset
from gantrymq.console.api.rights.accounts import (
    AccountPart,
    WantedAccounts,
    list_accounts,
    list_white_addresses,
)
from gantrymq.console.api.rights.explain import WantedDecision, explain_decision
from gantrymq.console.api.rights.overview import ClusterRights, show_rights
from gantrymq.console.api.rights.policies import (
    ACTIONS,
    NewPolicy,
    PolicyDeletion,
    delete_policy,
    put_policy,
)
from gantrymq.console.api.rights.user_changes import (
    NewUser,
    UserChanges,
    UserCopy,
    UserDeletion,
    copy_user,
    create_user,
    delete_user,
    preview_user_deletion,
    update_user,
)
from gantrymq.console.api.rights.users import (
    NamedUser,
    UserPart,
    WantedUsers,
    list_users,
    show_user,
)
from gantrymq.console.pages.forms import ListPart, form_with, no_plan, several, words
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("rights")
TABS: Final = ("users", "accounts")


class RightsPage(OfCluster, frozen=True, kw_only=True):
    """Which list the page shows, and which part of it."""

    tab: Literal["", "users", "accounts"] = ""
    """Without it the list of what the brokers have in force."""
    search: str = ""
    offset: Offset = 0
    limit: Limit = LIMIT


class UserPage(NamedUser, frozen=True, kw_only=True):
    """A user, and the entry of its policies that a form begins with."""

    resource: str = ""
    policy_type: str = "Custom"


@TABLE.page("/c/{cluster}/rights")
async def rights(view: View) -> Response:
    """Brokers with their kind of access control, then users or access keys."""
    asked = view.query(RightsPage)
    found = await show_rights(view.ask, OfCluster(cluster=view.cluster))
    tabs = _tabs(found)
    tab = asked.tab or _first_tab(found)
    listed = await _listed(view, asked, tab) if tab in tabs else None
    white = None
    if tab == "accounts" and tab in tabs:
        white = await list_white_addresses(view.ask, OfCluster(cluster=view.cluster))
    part = None
    if listed is not None:
        shown = listed.users if isinstance(listed, UserPart) else listed.accounts
        part = ListPart(view, listed.offset, asked.limit, len(shown), listed.count)
    return view.show(
        "rights.html", found=found, tabs=tabs, tab=tab, listed=listed, part=part, white=white,
        asked=asked, actions=ACTIONS[1:],
    )  # fmt: skip


def _tabs(found: ClusterRights) -> list[str]:
    """The lists that there are: of users, of access keys."""
    has = {
        "users": any(each.users is not None for each in found.brokers),
        "accounts": any(each.accounts is not None for each in found.brokers),
    }
    return [tab for tab in TABS if has[tab]]


def _first_tab(found: ClusterRights) -> str:
    is_by_accounts = any(each.accounts is not None for each in found.brokers) and not any(
        each.kind == "users" for each in found.brokers
    )
    return "accounts" if is_by_accounts else "users"


async def _listed(view: View, asked: RightsPage, tab: str) -> UserPart | AccountPart:
    given = {
        "cluster": asked.cluster,
        "search": asked.search,
        "offset": asked.offset,
        "limit": asked.limit,
    }
    if tab == "accounts":
        return await list_accounts(view.ask, convert(given, WantedAccounts))
    return await list_users(view.ask, convert(given, WantedUsers))


@TABLE.page("/c/{cluster}/rights/decision")
async def decision(view: View) -> Response:
    """Which rule decides, for the form that asks for it."""
    try:
        found = await explain_decision(view.ask, view.query(WantedDecision))
    except GantryError as error:
        return no_plan(view, error)
    return view.show("decision.html", decisions=found.decisions)


# users


@TABLE.page("/c/{cluster}/new-user")
async def new_user(view: View) -> Response:
    return view.show("new_user.html")


@TABLE.act("/c/{cluster}/new-user")
async def create(view: View) -> str:
    return (await create_user(view.ask, await view.form(NewUser))).text


@TABLE.page("/c/{cluster}/rights/users/{user}")
async def user(view: View) -> Response:
    asked = view.query(UserPage)
    found = await show_user(view.ask, NamedUser(cluster=asked.cluster, user=asked.user))
    edited = next(
        (
            each
            for each in found.policies
            if (each.policy_type, each.resource) == (asked.policy_type, asked.resource)
        ),
        None,
    )
    return view.show("rights_user.html", found=found, edited=edited, actions=ACTIONS)


@TABLE.act("/c/{cluster}/rights/users/{user}/change")
async def change(view: View) -> str:
    return (await update_user(view.ask, await view.form(UserChanges))).text


@TABLE.act("/c/{cluster}/rights/users/{user}/copy")
async def copy(view: View) -> str:
    return (await copy_user(view.ask, await view.form(UserCopy))).text


@TABLE.page("/c/{cluster}/rights/users/{user}/deletion")
async def deletion(view: View) -> Response:
    """What is lost with the user, for the form that deletes it."""
    try:
        loss = await preview_user_deletion(view.ask, view.query(NamedUser))
    except GantryError as error:
        return no_plan(view, error)
    text = view.texts("rights.loses", what=view.told(loss.text))
    return view.show("plan.html", text=text, rows=list(loss.policies.items()))


@TABLE.act("/c/{cluster}/rights/users/{user}/delete", leads_to="rights?tab=users")
async def delete(view: View) -> str:
    return (await delete_user(view.ask, await view.form(UserDeletion))).text


@TABLE.act("/c/{cluster}/rights/users/{user}/policies/put")
async def put(view: View) -> str:
    return (await put_policy(view.ask, await _policy(view))).text


async def _policy(view: View) -> NewPolicy:
    def addresses(value: str | None) -> list[str]:
        return words((value or "").replace(",", " "))

    return await form_with(view, NewPolicy, actions=several, sources=addresses)


@TABLE.act("/c/{cluster}/rights/users/{user}/policies/remove")
async def remove(view: View) -> str:
    return (await delete_policy(view.ask, await view.form(PolicyDeletion))).text
