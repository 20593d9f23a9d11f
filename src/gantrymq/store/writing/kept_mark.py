"""Up to where the log will not be taken back: what progress in it may rely on."""

from gantrymq.base.watermark import Watermark


class KeptMark:
    """The lower of two marks: flushed, and dispatched, which waits for copies.

    Progress that is saved ahead of it would skip messages after a crash. In a raft group dispatched
    means committed; a flush of this member adds nothing to that.
    """

    def __init__(self, flushed: Watermark, dispatched: Watermark, *, in_group: bool) -> None:
        self._marks = (dispatched,) if in_group else (flushed, dispatched)

    @property
    def value(self) -> int:
        return min(mark.value for mark in self._marks)

    async def reach(self, end: int) -> None:
        """Wait until the log is kept up to an offset."""
        for mark in self._marks:
            await mark.reach(end)
