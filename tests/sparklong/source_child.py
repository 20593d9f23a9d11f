"""A stream from `latest` into Parquet, as a user's program: NAMESRV TOPIC FOLDER KEPT NOW."""

import sys

from gantrymq.spark.runtime.session import local_session


def main(namesrv: str, topic: str, folder: str, kept: bool, now: bool) -> None:
    spark = local_session("source", master="local[2]")
    stream = spark.readStream.format("rocketmq").options(
        nameServer=namesrv, topic=topic, startingOffsets="latest", columns="body"
    )
    if kept:
        stream = stream.option("startStatePath", f"{folder}/state")
    writer = stream.load().writeStream.format("parquet").option("path", f"{folder}/out")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    trigger = {"availableNow": True} if now else {"processingTime": "100 milliseconds"}
    writer.trigger(**trigger).start().awaitTermination()
    for row in spark.read.parquet(f"{folder}/out").collect():
        sys.stdout.write(f"row {bytes(row.body).decode()}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4], kept=sys.argv[4] == "kept", now=sys.argv[5] == "now")
