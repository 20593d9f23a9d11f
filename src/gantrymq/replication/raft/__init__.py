"""A raft group: the rules, without I/O, clock or tasks.

Members of a group hold the same commit log. A raft index is a byte offset of the log at a record
boundary, and the epoch table says which term wrote which bytes; entries, files and tools are the
ordinary ones. `quorum` counts, `log_view` is what the rules know of the log, `messages` is what
members say, `ready` what the core wants done, `leadership` what a leader knows of its followers,
`config` what a member is told once. A member is `member` (its state), `leader_rules`,
`follower_rules` and `election_rules` (what it does in its roles), and `core`, which a driver calls.

The driver owns disk, connections and time. It builds a `RaftCore` from what is on disk, calls
`tick` at equal intervals, `step` for each message, `grow` when it wrote as leader and `note_synced`
when a sync is over; after any of them it settles:

    ready = core.take_ready()
    if ready.state: store it and sync            # before anything else of this Ready
    send ready.messages                          # an AppendRequest with its bytes from the log
    carry out ready.writes in order; start a sync of the log, remember core.log.end and core.cuts
    if ready.leader_record: append the leader record of core.term, core.grow(its size)
    if ready.change: take the new role           # writes of clients only while core.accepts_writes
    if ready.commit is not None: dispatch up to it, answer the sends that wait for it

    when that sync is over: send ready.after_sync, core.note_synced(end, cuts), settle again

A `Ready` may be taken while syncs of earlier ones are under way, as long as their `after_sync`
leave in order. What the driver has to keep:

- The stored state is durable before any message of the same `Ready` leaves. A failed sync of the
  log sends nothing that waits for it: a leader calls `resign`, a follower stops to answer.
- A `LogTruncation` or `LogRestart` is durable before bytes are written behind it, else a power cut
  mixes records of both. A restart copies the leader's registry before it is confirmed.
- A leader that resigned does not lead again in this process. Sends that were not committed when
  leadership ended are answered as unknown: they may survive.
- A member that lost bytes which it had acknowledged (no sync, and another boot id) starts with
  `StoredState(may_vote=False)`, and messages of its earlier process are not delivered after those
  of the new one. It votes again when it durably holds what the leader committed. So does an empty
  member that replaces a lost one; only members of a new group are empty and have a vote.
- Bytes of other members' logs enter by `writes` only; retention deletes only what is committed, and
  says so by `note_first`.
"""

from gantrymq.replication.raft.config import RaftConfig
from gantrymq.replication.raft.core import RaftCore
from gantrymq.replication.raft.errors import LogConflict, NotServing
from gantrymq.replication.raft.log_view import EpochStart, LogView
from gantrymq.replication.raft.ready import RaftRole, Ready, StoredState

__all__ = [
    "EpochStart",
    "LogConflict",
    "LogView",
    "NotServing",
    "RaftConfig",
    "RaftCore",
    "RaftRole",
    "Ready",
    "StoredState",
]
