"""Checks one index file: its entries determine its chains, slots and header."""

import numpy as np

from gantrymq.store.audit.findings import WRONG, Finding, TaskFindings
from gantrymq.store.files.index_files import IndexView
from gantrymq.store.files.mapped import Bools
from gantrymq.store.index.index_file import HEADER, link


def check_index(view: IndexView, ledger: TaskFindings, *, slots_too: bool) -> None:
    """Report what is wrong with one file; slots only with `slots_too`, if they are on disk."""
    rows, header = view.rows, view.header
    ledger.cover("index entries in their chain", rows.size)
    slots = np.zeros(view.slots, np.int32)
    places = rows["hash"].astype(np.int64) % view.slots
    previous = link(slots, places, 1)
    _report(
        view,
        ledger,
        "index-chain",
        rows["previous"] != previous,
        "entries whose chain leads elsewhere",
    )
    at = rows["at"].astype(np.int64)
    _report(
        view,
        ledger,
        "index-order",
        np.diff(at, prepend=at[:1]) < 0,
        "entries that are not in the order of the log",
    )
    if not slots_too:
        return
    on_disk = np.frombuffer(view.data, ">i4", view.slots, HEADER.size)
    wrong = np.flatnonzero(on_disk != slots)
    if wrong.size:
        ledger.add(
            Finding(
                WRONG,
                "index-slot",
                view.path,
                HEADER.size + 4 * int(wrong[0]),
                count=wrong.size,
                text="slots that do not lead to their newest entry",
            )
        )
    if rows.size:
        stated = (header.begin_offset, header.end_offset, header.slots_used)
        real = (int(at[0]), int(at[-1]), int(np.count_nonzero(slots)))
        if stated != real:
            ledger.add(
                Finding(
                    WRONG,
                    "index-header",
                    view.path,
                    0,
                    text="first and last log offset and "
                    f"slots in use are stated as {stated} but are {real}",
                )
            )


def _report(view: IndexView, ledger: TaskFindings, kind: str, wrong: Bools, text: str) -> None:
    found = np.flatnonzero(wrong)
    if found.size:
        number = int(found[0]) + 1
        byte = HEADER.size + view.slots * 4 + number * view.rows.itemsize
        ledger.add(
            Finding(
                WRONG,
                kind,
                view.path,
                byte,
                int(view.rows["at"][number - 1]),
                count=found.size,
                text=f"{text} (the first is number {number})",
            )
        )
