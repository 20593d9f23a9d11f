"""The two kernels under test, and what both are fed with."""

from typing import Any

from hypothesis import strategies as st

from gantrymq.kernel import (
    batches,
    dispatching,
    frames,
    keys,
    pulled,
    records,
    requests,
    responses,
    runs,
    send_runs,
    sends,
    signing,
    warm,
)

try:
    from gantrymq.kernel import _fast

    fast: Any = _fast
except ImportError:  # no compiler here: the pure twin is held to itself
    fast = None

I16 = st.integers(-(1 << 15), (1 << 15) - 1)
I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.sampled_from([b"TAGS", b"KEYS", b"UNIQ_KEY", b"WAIT", b"DELAY", b"KEY", b"XTAGS", b""])
VALUES = st.one_of(
    st.sampled_from([b"", b"a", b"a b  c", b" x ", b"\xc3\xa9", b"\xff\xfe", b"1", b"true"]),
    st.binary(max_size=40),
)
ENTRIES = st.lists(st.tuples(NAMES, VALUES), max_size=6)


def twin(name: str) -> Any:
    """The compiled function of that name."""
    return getattr(fast, name) if fast is not None else pure(name)


def pure(name: str) -> Any:
    """The readable function of that name."""
    modules = (
        frames, records, pulled, sends, signing, keys, warm, batches, runs, send_runs, requests,
        responses, dispatching,
    )  # fmt: skip
    return next(getattr(m, name) for m in modules if hasattr(m, name))


def outcome(function: Any, *arguments: Any) -> Any:
    """What a call gives, an exception included: its type is part of the agreement."""
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


@st.composite
def properties(draw: st.DrawFn) -> bytes:
    """A properties string, usually well-formed, with or without its last separator."""
    text = b"\x02".join(name + b"\x01" + value for name, value in draw(ENTRIES))
    return text + draw(st.sampled_from([b"\x02", b"", b"\x02\x02", b"\x01"]))


hosts = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20))


@st.composite
def record_items(draw: st.DrawFn) -> records.RecordItem:
    """One message on its way into the log."""
    topic = draw(st.one_of(st.sampled_from([b"orders", b"t", b"l" * 128]), st.binary(max_size=255)))
    body = draw(st.one_of(st.binary(max_size=300), st.just(bytes(70)), st.just(b"")))
    return (
        topic, draw(I32), draw(I64), draw(I32), draw(I32), draw(I64), draw(hosts),
        draw(I32), draw(I64), body, draw(properties()),
    )  # fmt: skip
