"""The timer's pure parts: times, the schedule, the checkpoint, handles and properties."""

import random
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.broker.waiting.timer.checkpoint import TimerCheck, load_check, save_check
from gantrymq.broker.waiting.timer.delivered import delivered_properties, rolled_properties
from gantrymq.broker.waiting.timer.recalls import recall_key, recalled_key
from gantrymq.broker.waiting.timer.schedule import Entry, Schedule
from gantrymq.broker.waiting.timer.times import asked_ms, due_ms, out_ms
from gantrymq.protocol import properties
from gantrymq.protocol.recall import RecallHandle
from gantrymq.testing.disk import MemoryDisk

NOW = 1_700_000_000_000


def encoded(**values: object) -> bytes:
    return properties.encode({name: str(value) for name, value in values.items()}).encode()


class TestTimes:
    @pytest.mark.parametrize(
        "asked, expected",
        [
            ({"TIMER_DELIVER_MS": str(NOW + 5)}, NOW + 5),
            ({"TIMER_DELAY_MS": "7"}, NOW + 7),
            ({"TIMER_DELAY_SEC": "7"}, NOW + 7000),
            ({"TIMER_DELAY_SEC": "-7"}, NOW - 7000),
            ({"TIMER_DELAY_SEC": "+7", "TIMER_DELAY_MS": "1"}, NOW + 7000),
            ({"TIMER_DELAY_MS": "1", "TIMER_DELIVER_MS": "9"}, NOW + 1),
            ({"TIMER_DELAY_MS": "soon", "TIMER_DELIVER_MS": "9"}, None),
            ({"TIMER_DELAY_MS": "1.5"}, None),
            ({"TIMER_DELIVER_MS": "9" * 30}, None),
            ({"TIMER_DELIVER_MS": "٣"}, None),
            ({}, None),
        ],
    )
    def test_what_a_sender_asks_for(self, asked: dict[str, str], expected: int | None) -> None:
        """
        Seconds before milliseconds before a time of day; anything but a number is nothing.
        """
        assert expected == asked_ms(asked, NOW)

    @pytest.mark.parametrize(
        "deliver, precision, expected",
        [(5_500, 1_000, 5_000), (5_000, 1_000, 4_000), (5_001, 1_000, 5_000), (5_000, 1, 4_999)],
    )
    def test_the_written_time_is_rocketmqs(
        self, deliver: int, precision: int, expected: int
    ) -> None:
        """
        Rounded down to the precision; an exact multiple is lowered by one tick.
        """
        assert expected == out_ms(deliver, precision)

    @given(
        delay=st.integers(1, 10**12),
        precision=st.sampled_from([1, 10, 100, 1_000]),
        kind=st.sampled_from(["TIMER_DELIVER_MS", "TIMER_DELAY_MS"]),
        stored_late=st.integers(0, 3),
    )
    def test_a_message_is_never_due_early(
        self, delay: int, precision: int, kind: str, stored_late: int
    ) -> None:
        """
        Whatever precision wrote it, ours reads the exact time, or a moment later.
        """
        value = NOW + delay if kind == "TIMER_DELIVER_MS" else delay
        written = encoded(**{kind: value, "TIMER_OUT_MS": out_ms(NOW + delay, precision)})
        due = due_ms(written, NOW + stored_late, 1)

        assert due is not None
        assert NOW + delay <= due <= NOW + delay + stored_late

    @given(delay=st.integers(2_000, 10**10), waited=st.integers(0, 10**9))
    def test_a_copy_is_due_when_its_original_was(self, delay: int, waited: int) -> None:
        """
        It is stored anew, but its relative delay does not begin again.
        """
        first = encoded(TIMER_DELAY_MS=delay, TIMER_OUT_MS=out_ms(NOW + delay, 1))
        due = due_ms(first, NOW, 1)
        assert due is not None
        copy = rolled_properties(first, due - 1)

        assert due == due_ms(copy, NOW + waited, 1)
        assert b"TIMER_ROLL_TIMES\x011\x02" in copy
        assert b"TIMER_ROLL_TIMES\x012\x02" in rolled_properties(copy, due - 1)

    def test_what_says_no_time_has_none(self) -> None:
        """
        The caller reports it.
        """
        assert None is due_ms(b"", NOW, 1)
        assert None is due_ms(encoded(TIMER_OUT_MS="x"), NOW, 1)


class TestSchedule:
    @given(
        st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["a", "b"])), max_size=60),
        st.sets(st.integers(0, 59)),
        st.integers(0, 50),
    )
    def test_it_gives_out_what_is_due_in_order(
        self, rows: list[tuple[int, str]], dropped: set[int], until: int
    ) -> None:
        """
        By due time, ties by offset, nothing that was dropped, nothing early, nothing twice.
        """
        schedule = Schedule()
        entries = [Entry(NOW + due, at, schedule.number_of(t)) for at, (due, t) in enumerate(rows)]
        for entry in entries:
            schedule.add(entry)
        schedule.drop(at for at in dropped if at < len(rows))
        kept = sorted(entry for entry in entries if entry.offset not in dropped)
        first = schedule.take(NOW + until, 1_000)
        assert sum(1 for _ in schedule.compact()) >= 0

        assert [entry for entry in kept if entry.due_ms <= NOW + until] == first
        rest = [entry for entry in kept if entry.due_ms > NOW + until]
        assert len(rest) == len(schedule)
        found = sorted(Entry.unpack(n) for piece in schedule.pieces() for n in piece)
        assert rest == found
        assert (rest[0].due_ms if rest else None) == schedule.head_ms
        assert [rows[e.offset][1] for e in rest] == [schedule.name_of(e.topic) for e in rest]

    def test_it_says_whether_a_new_one_is_the_soonest(self) -> None:
        """
        Only then does the sleeper have to wake.
        """
        schedule = Schedule()

        assert [True, False, False, True] == [
            schedule.add(Entry(NOW + due, at)) for at, due in enumerate((5, 9, 5, 4))
        ]

    def test_many_come_out_in_order_whatever_happens_to_them(self) -> None:
        """
        Through sorted runs, runs given up half empty, drops and late comers: as a sorted list.
        """
        rng, schedule, model = random.Random(5), Schedule(), list[Entry]()
        number, now = schedule.number_of("orders"), NOW
        for step in range(60):
            for at in range(step * 1_000, step * 1_000 + 1_000):
                far = rng.random() < 0.1
                entry = Entry(now + rng.randrange(10**9 if far else 20_000), at, number)
                schedule.add(entry)
                model.append(entry)
            model.sort()
            if step % 7 == 3:
                gone = {entry.offset for entry in rng.sample(model, 500)}
                schedule.drop(gone)
                for _ in schedule.compact():
                    late = Entry(now + 5, 10**9 + step * 100 + rng.randrange(10**6), number)
                    schedule.add(late)
                    model.append(late)
                model = sorted(entry for entry in model if entry.offset not in gone)
            now += 3_000
            due = [entry for entry in model if entry.due_ms <= now]
            model = model[len(due) :]
            assert due == schedule.take(now, 10**6)
            assert len(model) == len(schedule)

        assert model == schedule.take(NOW + 10**10, 10**6)
        assert None is schedule.head_ms

    def test_a_waiting_message_costs_a_few_bytes(self) -> None:
        """
        A million fit into the 38 MiB that RocketMQ's wheel takes for none.
        """
        schedule, number = Schedule(), 1
        tracemalloc.start()
        for at in range(50_000):
            schedule.add(Entry(NOW + at * 7919 % 10**9, at, number))
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()

        assert used / 50_000 < 30


class TestCheckpoint:
    def test_its_bytes_are_rocketmqs(self) -> None:
        """
        Seven numbers in the order of TimerCheckpoint. It is to read again all that waits; ours
        goes on where it was, unless RocketMQ has written since.
        """
        theirs = struct.pack(">7q", NOW, 520, 10, 10, 0, NOW + 1, 3).ljust(4096, b"\0")
        ours = TimerCheck(read_ms=NOW, offset=10, low=4, counter=3, saved_ms=NOW + 1)

        assert TimerCheck(NOW, 10, 0, 3, NOW + 1) == TimerCheck.decode(theirs)
        assert struct.unpack_from(">7q", ours.encode()) == (NOW, 0, 4, 4, 0, NOW + 1, 3)
        changed = struct.pack(">7q", NOW, 0, 25, 25, 0, NOW + 9, 4) + ours.encode()[56:]
        assert TimerCheck(NOW, 25, 0, 4, NOW + 9) == TimerCheck.decode(changed)
        assert ours == TimerCheck.decode(ours.encode())
        assert TimerCheck() == TimerCheck.decode(theirs[:40])

    def test_it_is_written_in_place_and_found_again(self) -> None:
        """
        One page, as RocketMQ maps it; none is as good as a fresh one.
        """
        disk, path = MemoryDisk(), "store/config/timercheck"
        assert TimerCheck() == load_check(disk, path)
        for number in (1, 2):
            save_check(disk, path, TimerCheck(offset=number))
            assert (number, 4096) == (load_check(disk, path).offset, disk.open_read(path).size())


class TestHandles:
    def test_a_handle_is_rocketmqs(self) -> None:
        """
        URL-safe base64 of five words.
        """
        handle = RecallHandle("orders", "broker-a", 1_700_000_000_001, "7F0000010000")
        text = "djEgb3JkZXJzIGJyb2tlci1hIDE3MDAwMDAwMDAwMDEgN0YwMDAwMDEwMDAw"

        assert text == handle.encode()
        assert handle == RecallHandle.decode(text)

    @pytest.mark.parametrize("text", ["", "%%%", "djE=", "djIgYSBiIDEgYw==", "/+/+", "djEgw"])
    def test_what_is_no_handle_is_refused(self, text: str) -> None:
        """
        Wrong letters, too few words, another version.
        """
        with pytest.raises(ProtocolError, match="recall handle is invalid"):
            RecallHandle.decode(text)

    def test_a_time_that_is_no_number_is_in_the_past(self) -> None:
        """
        As RocketMQ reads it.
        """
        assert -1 == RecallHandle.decode(RecallHandle("t", "b", 1, "m")._replace(
            deliver_ms="x").encode()).deliver_ms  # type: ignore[arg-type]  # fmt: skip

    def test_keys_name_a_message_of_one_topic(self) -> None:
        """
        RocketMQ before 5.2 wrote the id alone; a recall of another topic's message is none.
        """
        assert "orders+id" == recall_key(encoded(UNIQ_KEY="id"), "orders")
        assert None is recall_key(b"", "orders")
        for written, expected in (("orders+id", "orders+id"), ("id", "orders+id"), ("x+id", None)):
            assert expected == recalled_key(encoded(TIMER_DEL_UNIQKEY=written), "orders")
        assert None is recalled_key(b"", "orders")


class TestProperties:
    def test_delivery_adds_two_stamps(self) -> None:
        """
        Also behind properties without a last separator, and in place of older ones.
        """
        stamps = b"TIMER_ENQUEUE_MS\x015\x02TIMER_DEQUEUE_MS\x019\x02"

        assert b"a\x01b\x02" + stamps == delivered_properties(b"a\x01b", 5, 9)
        assert stamps == delivered_properties(b"", 5, 9)
        assert stamps == delivered_properties(delivered_properties(b"", 1, 2), 5, 9)

    def test_properties_without_room_stay_as_they_are(self) -> None:
        """
        A message at the limit is delivered all the same.
        """
        full = encoded(TIMER_OUT_MS=NOW, big="x" * 32_735)

        assert full == delivered_properties(full, NOW, NOW)
        assert full == rolled_properties(full, NOW)
