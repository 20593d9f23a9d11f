"""Reading and answering sends: the compiled kernel gives what the readable one gives."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twins import I32, I64, hosts, outcome, pure, twin

TAIL = b"CLUSTER\x01c\x02"
ORDINARY = {"b": "orders", "e": "3", "f": "0", "g": "1700000000000", "h": "0", "j": "0"}

numbers = st.one_of(
    I32.map(str), I64.map(str), st.sampled_from(["", "-", "+1", " 1", "1_0", "٣", "0", "00", "-0"]),
    st.integers().map(str), st.text(max_size=4),
)  # fmt: skip
topics = st.one_of(
    st.sampled_from(["orders", "%RETRY%g", "TBW102", "Topic", "SCHEDULE_TOPIC_XXXX", "S_XXXX", "T",
                     "Tx_XXXX", "RéSUMÉ", "R1", ""]),
    st.text("SRTOax_X%1", max_size=8), st.text(max_size=5),
)  # fmt: skip
entries = st.one_of(
    st.sampled_from(["POP_CK\x011 2", "POP_CK\x01", "POP_CK"]),
    st.sampled_from(["WAIT\x01true", "WAIT\x01false", "WAIT\x01", "XWAIT\x01true", "UNIQ_KEY\x01A1",
                     "UNIQ_KEY\x01", "UNIQ_KEY\x01é", "TAGS\x01a", "DELAY\x013", "XDELAY\x011",
                     "TRAN_MSG\x01true", "TRAN_MSG\x01false", "TRAN_MSG\x01tru",
                     "TIMER_DELIVER_MS\x019",
                     "TIMER_DE", "TTIMER_DELAY_MS\x011", "", "\x01"]),
    st.text(max_size=6),
)  # fmt: skip
texts = st.tuples(st.lists(entries, max_size=5), st.sampled_from(["", "\x02", "\x02\x02"])).map(
    lambda parts: "\x02".join(parts[0]) + parts[1]
)


def both(ext: dict[str, str]) -> Any:
    first = outcome(twin("read_send"), ext, TAIL)
    assert first == outcome(pure("read_send"), ext, TAIL)
    return first


@given(
    st.fixed_dictionaries(
        {}, optional={"b": topics, "e": numbers, "f": numbers, "g": numbers, "h": numbers,
                      "i": texts, "j": numbers, "m": st.sampled_from(["true", "false", ""])}
    )
)  # fmt: skip
def test_any_header_is_read_alike(ext: dict[str, str]) -> None:
    """
    Both kernels read any fields of a send alike, or leave them to the slow path.
    """
    both(ext)


@given(topics)
def test_topics_are_judged_alike(topic: str) -> None:
    """
    Both kernels decide alike whether a topic name takes the fast path.
    """
    both(ORDINARY | {"b": topic})


@given(st.sampled_from("efghj"), numbers)
def test_numbers_are_judged_alike(name: str, text: str) -> None:
    """
    Both kernels decide alike whether a number takes the fast path.
    """
    both(ORDINARY | {name: text})


@given(st.one_of(texts, st.text(max_size=30), texts.map(lambda text: text + "x" * 5000)))
@example("WAIT\x01false")
@example("\x02WAIT\x01true")
@example("UNIQ_KEY\x01A\x02WAIT\x01true")
def test_properties_are_stored_alike(text: str) -> None:
    """
    Both kernels turn properties into the same stored bytes.
    """
    both(ORDINARY | {"i": text})


def test_an_ordinary_send_is_read() -> None:
    """
    The fast path reads an ordinary send into its record fields.
    """
    text = "UNIQ_KEY\x017F01\x02WAIT\x01false\x02TAGS\x01a"
    stored = b"UNIQ_KEY\x017F01\x02WAIT\x01false\x02TAGS\x01a\x02" + TAIL
    expected = ("orders", 3, 0, 0, 1700000000000, 0, stored, "7F01", False)

    assert both(ORDINARY | {"i": text}) == expected


def test_the_receipt_of_a_pop_is_not_stored_again() -> None:
    """
    The fast path drops POP_CK, and only that property.
    """
    text = "POP_CK\x010 1 2 3 0 b 0 0\x02TAGS\x01a\x02XPOP_CK\x01kept"

    found = both(ORDINARY | {"i": text})

    assert found is not None
    assert found[6] == b"TAGS\x01a\x02XPOP_CK\x01kept\x02" + TAIL


def test_what_needs_a_closer_look_is_left_to_it() -> None:
    """
    Batches, transactions, delays, system topics and malformed fields are left to the slow path.
    """
    for odd in (
        {"m": "true"}, {"f": "4"}, {"f": "8"}, {"h": "99999999999"}, {"e": "x"}, {"b": "%RETRY%g"},
        {"b": "RMQ_SYS_TRANS_HALF_TOPIC"}, {"i": "DELAY\x013\x02"}, {"i": "TRAN_MSG\x01true"},
    ):  # fmt: skip
        assert both(ORDINARY | odd) is None
    for missing in "beg":
        assert both({k: v for k, v in ORDINARY.items() if k != missing}) is None


@given(
    st.tuples(
        st.sampled_from([0, 1]), st.integers(-40000, 40000), st.one_of(I32, st.integers()), hosts,
        st.integers(0, (1 << 63) - 1), st.one_of(I32, st.integers()), I64,
        st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
                  st.just("x" * 900)),
    )
)  # fmt: skip
def test_answers_to_stored_messages_have_the_same_bytes(arguments: tuple[Any, ...]) -> None:
    """
    Both kernels encode the answer to a stored message to the same bytes.
    """
    first = outcome(twin("stored_answer"), *arguments)
    assert first == outcome(pure("stored_answer"), *arguments)
