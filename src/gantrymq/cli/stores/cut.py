"""`gantry store cut`: cut the end off the log of a stopped broker."""

import asyncio
import sys
from pathlib import Path

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import output_option, print_rows
from gantrymq.cli.stores.options import log_option, store_argument


@click.command("cut", cls=GuardedCommand)
@store_argument
@click.option("--at", "at", type=click.IntRange(0), required=True, help="A log offset.")
@log_option
@output_option
def cut(folder: Path, at: int, log_folder: Path | None, output: str) -> None:
    """Cut the log of STORE at an offset, so that a slave can follow a master that lost messages.

    What is cut off is saved in STORE/cut first, as a store of its own. The slave's next start does
    the cut. Its log names the offset, when its master refuses it.
    """
    from gantrymq.base.disk import OsDisk
    from gantrymq.base.offload import ThreadOffload
    from gantrymq.store.recovery.log_cut import OrderedCut, order_cut

    async def run() -> OrderedCut:
        offload = ThreadOffload()
        try:
            return await order_cut(
                str(folder),
                at,
                disk=OsDisk(),
                offload=offload,
                log_directory=str(log_folder) if log_folder else "",
            )
        finally:
            offload.close()

    done = asyncio.run(run())
    row = {"at": done.at, "messages": done.messages, "bytes": done.bytes, "saved": done.saved}
    print_rows([row], output)
    said = (
        "nothing lies behind it"
        if not done.saved
        else (f"the next start cuts off {counted(done.messages, 'message')}; they are saved")
    )
    print(said, file=sys.stderr)
