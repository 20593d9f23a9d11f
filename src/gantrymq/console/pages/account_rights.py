"""The access keys of RocketMQ 4.9's access files, and the global white lists."""

from starlette.responses import Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.rights.account_changes import (
    AccountChanges,
    AccountCopy,
    AccountDeletion,
    NewAccount,
    NewWhiteAddresses,
    copy_account,
    create_account,
    delete_account,
    preview_account_deletion,
    put_white_addresses,
    update_account,
)
from gantrymq.console.api.rights.accounts import NamedAccount, rights_of, show_account_rights
from gantrymq.console.pages.forms import form_with, no_plan, pairs, words
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("rights")


def _text(value: str | None) -> str:
    """A field that is sent empty to empty what is there."""
    return (value or "").strip()


@TABLE.page("/c/{cluster}/new-account")
async def new_account(view: View) -> Response:
    return view.show("new_account.html", before=rights_of({}))


@TABLE.act("/c/{cluster}/new-account")
async def create(view: View) -> str:
    wanted = await form_with(view, NewAccount, topicPerms=pairs, groupPerms=pairs)
    return (await create_account(view.ask, wanted)).text


@TABLE.page("/c/{cluster}/rights/accounts/{accessKey}")
async def account(view: View) -> Response:
    found = await show_account_rights(view.ask, view.query(NamedAccount))
    return view.show("rights_account.html", found=found)


@TABLE.act("/c/{cluster}/rights/accounts/{accessKey}/change")
async def change(view: View) -> str:
    wanted = await form_with(
        view, AccountChanges, topicPerms=pairs, groupPerms=pairs, whiteAddress=_text
    )
    return (await update_account(view.ask, wanted)).text


@TABLE.act("/c/{cluster}/rights/accounts/{accessKey}/copy")
async def copy(view: View) -> str:
    return (await copy_account(view.ask, await view.form(AccountCopy))).text


@TABLE.page("/c/{cluster}/rights/accounts/{accessKey}/deletion")
async def deletion(view: View) -> Response:
    """What is lost with the access key, for the form that deletes it."""
    try:
        loss = await preview_account_deletion(view.ask, view.query(NamedAccount))
    except GantryError as error:
        return no_plan(view, error)
    text = view.texts("rights.loses", what=view.told(loss.text))
    return view.show("plan.html", text=text, rows=list(loss.rules.items()))


@TABLE.act("/c/{cluster}/rights/accounts/{accessKey}/delete", leads_to="rights?tab=accounts")
async def delete(view: View) -> str:
    return (await delete_account(view.ask, await view.form(AccountDeletion))).text


@TABLE.act("/c/{cluster}/rights/white-addresses")
async def white(view: View) -> str:
    """Each address on a line of its own."""
    return (
        await put_white_addresses(
            view.ask, await form_with(view, NewWhiteAddresses, addresses=words)
        )
    ).text
