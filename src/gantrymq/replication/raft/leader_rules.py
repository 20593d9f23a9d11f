"""What a leader does with ticks and answers. Pure."""

from collections.abc import Iterable

import msgspec

from gantrymq.replication.raft.leadership import Leadership
from gantrymq.replication.raft.member import RaftMember
from gantrymq.replication.raft.messages import (
    AppendAnswer,
    HeartbeatAnswer,
)
from gantrymq.replication.raft.ready import (
    RaftRole,
)


class LeaderRules(RaftMember):
    """What a leader does with ticks and answers."""

    def _lead(self) -> None:
        config = self.config
        self.role, self.leader = RaftRole.LEADER, config.me
        # One whose vote does not count leads when all agreed: its log is all that is left.
        self.stored = msgspec.structs.replace(self.stored, may_vote=True)
        self.leadership = Leadership(config.group, self.term, config.me, self._others, self.log)
        self._elapsed = self._heartbeat_elapsed = 0
        self._leader_record = True

    def _tick_leader(self, leadership: Leadership) -> None:
        self._heartbeat_elapsed += 1
        if self._elapsed >= self.config.election_ticks:
            self._elapsed, leadership.transferee = 0, None
            if self.config.check_quorum and not leadership.quorum_heard():
                self._follow(self.term, None)
                return
        if self._heartbeat_elapsed >= self.config.heartbeat_ticks:
            self._heartbeat_elapsed = 0
            self._messages.extend(leadership.heartbeats(self.commit))

    def _note_append_answer(self, answer: AppendAnswer) -> None:
        leadership = self.leadership
        if leadership is None:
            return
        leadership.note_answer(answer, self.log)
        self._advance_commit(leadership)
        self._send_appends(leadership, (answer.sender,))
        if answer.sender == leadership.transferee:
            self._hand_over(leadership)

    def _note_heartbeat_answer(self, answer: HeartbeatAnswer) -> None:
        leadership = self.leadership
        if leadership is None:
            return
        probe = leadership.note_heartbeat(answer, self.log, self.commit)
        if probe is not None:
            self._messages.append(probe)
        self._send_appends(leadership, (answer.sender,))

    def _send_appends(self, leadership: Leadership, names: Iterable[str]) -> None:
        if self.log.end == leadership.start:
            return  # The leader record comes first.
        limits = self.config.append_bytes_max, self.config.inflight_bytes_max
        for name in names:
            sent = leadership.appends(name, self.log, self.commit, limits, self._boundary)
            self._messages.extend(sent)

    def _advance_commit(self, leadership: Leadership) -> None:
        offset = leadership.held_by_majority(self.log)
        if offset > self.commit and leadership.may_commit(offset, self.log):
            self.commit = offset

    def _hand_over(self, leadership: Leadership) -> None:
        order = leadership.timeout_now(self.log)
        if order is not None:
            self._messages.append(order)
