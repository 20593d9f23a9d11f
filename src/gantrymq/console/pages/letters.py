"""Dead letters: groups, causes, letters, one beside a message that went well, and resends."""

from typing import Any

from starlette.responses import Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.http import convert
from gantrymq.console.api.jobs import NamedJob, WantedJobs, list_jobs, stop_job
from gantrymq.console.api.letter_jobs import (
    Resending,
    go_on_resending,
    is_waiting,
    pause_resending,
    resend_letters,
)
from gantrymq.console.api.letters import (
    ChangedLetter,
    ChosenLetters,
    NamedLetter,
    NamedNote,
    NewNote,
    OfGroup,
    WantedLetterGroups,
    WantedLetters,
    add_note,
    delete_note,
    list_causes,
    list_letter_groups,
    list_letters,
    list_notes,
    mend_letter_topic,
    resend_letter,
    show_letter,
)
from gantrymq.console.pages.forms import ListPart, checked, edited, form_with, several
from gantrymq.console.pages.page import PageTable, View
from gantrymq.console.pages.search_fields import letters_query, times_of

TABLE = PageTable("letters")
_CHOSEN = ("fingerprint", "topic", "key")


@TABLE.page("/c/{cluster}/letters")
async def letter_groups(view: View) -> Response:
    """The groups with dead letters."""
    wanted = view.query(WantedLetterGroups)
    found = await list_letter_groups(view.ask, wanted)
    part = ListPart(view, found.offset, wanted.limit, len(found.groups), found.count)
    return view.show("letter_groups.html", found=found, wanted=wanted, part=part)


@TABLE.page("/c/{cluster}/letters/{group}")
async def letters(view: View) -> Response:
    """The letters of a group: causes, a page of letters, jobs and notes."""
    fields = {name: value for name, value in view.request.query_params.items() if value}
    group = view.request.path_params["group"]
    values: dict[str, Any] = {
        "group": group, "fields": fields, "trouble": "", "causes": None, "page": None,
        "query": letters_query(fields),
    }  # fmt: skip
    chosen = {name: fields[name] for name in _CHOSEN if name in fields}
    try:
        times = times_of(fields, view.ask.parts.clock.now_ms())
        chosen |= {
            name: str(times[field])
            for name, field in (("sinceMs", "fromMs"), ("untilMs", "untilMs"))
            if field in times
        }
        asked = {"cluster": view.cluster, "group": group} | chosen
        values["causes"] = await list_causes(view.ask, convert(asked, ChosenLetters, is_text=True))
        page = asked | {name: fields[name] for name in ("after", "limit") if name in fields}
        values["page"] = await list_letters(view.ask, convert(page, WantedLetters, is_text=True))
    except GantryError as error:
        values["trouble"] = view.told(error)
    values["chosen"] = chosen
    return view.show("letters.html", **values, **await _around(view, group))


async def _around(view: View, group: str) -> dict[str, Any]:
    """Jobs and notes of a group."""
    subject = f"dead letters of {group}"
    jobs = await list_jobs(view.ask, WantedJobs(cluster=view.cluster, subject=subject))
    notes = await list_notes(view.ask, OfGroup(cluster=view.cluster, group=group))
    waiting = {each.job for each in jobs.jobs if is_waiting(view.ask, each.job)}
    return {"jobs": jobs.jobs[:5], "waiting": waiting, "notes": notes.notes}


@TABLE.page("/c/{cluster}/letters/{group}/{letter}")
async def letter(view: View) -> Response:
    """One letter, side by side with a message that went well."""
    found = await show_letter(view.ask, view.query(NamedLetter))
    group = view.request.path_params["group"]
    notes = await list_notes(view.ask, OfGroup(cluster=view.cluster, group=group))
    about = (found.letter.dead_id, found.letter.fingerprint)
    own = [each for each in found.properties if not each.is_system and not each.is_masked]
    return view.show(
        "letter.html",
        found=found,
        group=group,
        notes=[each for each in notes.notes if each.about in about],
        own="\n".join(f"{each.name}={each.value}" for each in own),
        can_edit_body=not found.body.is_masked
        and not found.body.is_cut
        and found.body.form in ("json", "text"),
    )


# acts


@TABLE.act("/c/{cluster}/letters/{group}/{letter}/resend")
async def resend(view: View) -> str:
    """Send one again, with what its form says."""
    fields = await view.fields()
    wanted: dict[str, Any] = dict(view.request.path_params)
    wanted |= {"to": fields.get("to", "retry"), "again": "again" in fields} | edited(fields)
    return (await resend_letter(view.ask, convert(wanted, ChangedLetter, is_text=True))).text


@TABLE.act("/c/{cluster}/letter-jobs/{group}/resend")
async def resend_many(view: View) -> str:
    """Begin a job: for the letters that are marked, or for all that the filter chooses."""
    wanted = await form_with(view, Resending, ids=several, again=checked)
    return (await resend_letters(view.ask, wanted)).text


@TABLE.act("/c/{cluster}/letter-jobs/{job}/pause")
async def pause(view: View) -> str:
    return (await pause_resending(view.ask, await view.form(NamedJob))).text


@TABLE.act("/c/{cluster}/letter-jobs/{job}/go-on")
async def go_on(view: View) -> str:
    return (await go_on_resending(view.ask, await view.form(NamedJob))).text


@TABLE.act("/c/{cluster}/letter-jobs/{job}/stop")
async def stop(view: View) -> str:
    return (await stop_job(view.ask, await view.form(NamedJob))).text


@TABLE.act("/c/{cluster}/letter-notes/{group}/add")
async def note(view: View) -> str:
    return (await add_note(view.ask, await view.form(NewNote))).text


@TABLE.act("/c/{cluster}/letter-notes/{group}/remove")
async def remove_note(view: View) -> str:
    return (await delete_note(view.ask, await view.form(NamedNote))).text


@TABLE.act("/c/{cluster}/letter-mending/{group}")
async def mend(view: View) -> str:
    return (await mend_letter_topic(view.ask, await view.form(OfGroup))).text
