"""What waits: delayed messages, retries and timers, and transactions without a decision."""

from starlette.responses import Response

from gantrymq.console.api.waiting import (
    NamedHalf,
    Recalled,
    WantedTransactions,
    WantedWaiting,
    check_transaction_now,
    list_transactions,
    list_waiting,
    recall_waiting,
    resume_transaction_check,
)
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("waiting")


@TABLE.page("/c/{cluster}/waiting")
async def waiting(view: View) -> Response:
    """Delayed messages, by room and topic."""
    wanted = view.query(WantedWaiting)
    found = await list_waiting(view.ask, wanted)
    now_ms = view.ask.parts.clock.now_ms()
    return view.show("waiting.html", found=found, wanted=wanted, now_ms=now_ms)


@TABLE.page("/c/{cluster}/transactions")
async def transactions(view: View) -> Response:
    """Half messages without a decision."""
    found = await list_transactions(view.ask, view.query(WantedTransactions))
    return view.show("transactions.html", found=found)


@TABLE.act("/c/{cluster}/waiting/recall")
async def recall(view: View) -> str:
    return (await recall_waiting(view.ask, await view.form(Recalled))).text


@TABLE.act("/c/{cluster}/transactions/resume")
async def resume(view: View) -> str:
    return (await resume_transaction_check(view.ask, await view.form(NamedHalf))).text


@TABLE.act("/c/{cluster}/transactions/check")
async def check(view: View) -> str:
    return (await check_transaction_now(view.ask, await view.form(NamedHalf))).text
