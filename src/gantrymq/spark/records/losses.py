"""What to do about messages that were deleted before they were read: fail, skip or report."""

import json

from gantrymq.model import Queue
from gantrymq.spark.options.source_options import FAIL, REPORT, SourceOptions
from gantrymq.spark.records.fetch import Lost, fail, skip
from gantrymq.spark.records.state_files import write_state


def on_loss(options: SourceOptions) -> Lost:
    """The function to call for lost messages, as failOnDataLoss says."""
    if options.on_loss == FAIL:
        return fail
    if options.on_loss != REPORT:
        return skip
    folder = options.state_path
    assert folder is not None

    def report(queue: Queue, start: int, end: int) -> None:
        """Write one file a gap. Its name holds the offsets, so a repeated task replaces it."""
        row = {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
            "start": start,
            "end": end,
        }
        name = f"losses/{queue.topic}-{queue.broker_name}-{queue.queue_id}-{start}-{end}.json"
        write_state(folder, name, json.dumps(row).encode() + b"\n")

    return report
