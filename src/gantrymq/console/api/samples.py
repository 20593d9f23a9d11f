"""Figures over time: rates, lag and disks, as the console has sampled them."""

from typing import Final, Literal

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.errors import BadInput
from gantrymq.console.sampling.rings import SampleRings, named
from gantrymq.console.sampling.trends import seconds_to_drain, slope

TABLE = EndpointTable("samples")

Period = Literal["hour", "day", "week"]
PERIODS: Final[dict[str, tuple[int, int]]] = {
    "hour": (10, 3_600), "day": (60, 86_400), "week": (600, 604_800),
}  # fmt: skip
"""Seconds between two values, and seconds in all."""
Kind = Literal["rates", "lag", "groups", "disk", "group", "topic"]
GROUPS_SHOWN: Final = 6
SERIES_SHOWN_MAX: Final = 12
TREND_SECONDS: Final = 600


class WantedSamples(OfCluster, frozen=True, kw_only=True):
    """Which figures, and how far back."""

    kind: Kind
    """`rates` in and out of the cluster or of a broker, `lag` of all groups, `groups` with the
    largest lag, `disk` of each broker, or the figures of one `group` or `topic`."""
    name: str | None = None
    """The group, topic or broker."""
    period: Period = "hour"


class SampledSeries(Answer, frozen=True, kw_only=True):
    """One line of a chart."""

    label: str
    """in, out, lag, read, sent, disk, or the name of a group or broker."""
    unit: str
    """perSecond, messages or share."""
    values: list[float | None]
    """One a step; null where nothing is known."""


class Samples(Answer, frozen=True, kw_only=True):
    """Lines with a common time."""

    from_ms: int
    step_ms: int
    series: list[SampledSeries]
    trouble: str
    """Why the last sample has gaps; empty if it has none."""
    growth_per_second: float | None = None
    """Of a group's lag, over the last ten minutes."""
    drain_seconds: float | None = None
    """How long the lag lasts if it goes on like this; null if it does not shrink."""


@TABLE.get("/clusters/{cluster}/samples")
async def show_samples(ask: Ask, wanted: WantedSamples) -> Samples:
    """Rates, lag or disks of the last hour, day or week."""
    watched = ask.parts.watch.of(wanted.cluster)
    if wanted.kind in ("group", "topic"):
        if wanted.name is None:
            raise BadInput(f"name the {wanted.kind}")
        watched.sampler.view(wanted.kind, wanted.name)
    step, seconds = PERIODS[wanted.period]
    now_s = ask.parts.clock.now_ms() // 1000
    to_s = (now_s // step + 1) * step  # with what has just begun
    from_s = to_s - seconds
    chosen = chosen_series(watched.rings, wanted.kind, wanted.name, to_s)
    growth = drain = None
    if wanted.kind == "group" and wanted.name is not None:
        recent = watched.rings.read(named("lag", wanted.name), 10, now_s - TREND_SECONDS, now_s)
        growth = slope(recent, 10)
        known = [value for value in recent if value is not None]
        drain = seconds_to_drain(known[-1], growth) if known else None
    return Samples(
        from_ms=from_s * 1000,
        step_ms=step * 1000,
        series=[
            SampledSeries(
                label=label, unit=unit, values=watched.rings.read(name, step, from_s, to_s)
            )
            for label, unit, name in chosen
        ],
        trouble=watched.sampler.trouble,
        growth_per_second=growth,
        drain_seconds=drain,
    )


def chosen_series(
    rings: SampleRings, kind: str, name: str | None, now_s: int
) -> list[tuple[str, str, str]]:
    """Label, unit and name of the series of a kind."""
    if kind == "rates":
        if name is None:
            return [("in", "perSecond", "in"), ("out", "perSecond", "out")]
        return [(each, "perSecond", named(each, name)) for each in ("in", "out")]
    if kind == "lag":
        return [("lag", "messages", "lag")]
    if kind == "group" and name is not None:
        return [("lag", "messages", named("lag", name)), ("read", "perSecond", named("read", name))]
    if kind == "topic" and name is not None:
        return [("sent", "perSecond", named("sent", name))]
    if kind == "disk":
        found = sorted(each for each in rings.names() if each.startswith("disk:"))
        return [(each[5:], "share", each) for each in found[:SERIES_SHOWN_MAX]]
    lags = {
        each: rings.read(each, 60, now_s // 60 * 60 - 300, now_s // 60 * 60 + 60)
        for each in rings.names()
        if each.startswith("lag:")
    }
    sizes = {
        each: max((v for v in values if v is not None), default=0.0)
        for each, values in lags.items()
    }
    largest = sorted((each for each in sizes if sizes[each]), key=lambda each: (-sizes[each], each))
    return [(each[4:], "messages", each) for each in largest[:GROUPS_SHOWN]]
