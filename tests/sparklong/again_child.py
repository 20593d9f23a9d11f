"""A program that repeats a job without end: version after version, until it is killed."""

import sys
from typing import Any

from pyspark.sql import functions as f

from gantrymq.pipelines.jobs.job import Job
from gantrymq.spark.runtime.session import local_session


def versioned(number: int) -> Any:
    def work(messages: Any) -> Any:
        second = f.date_trunc("second", "storeTimestamp").alias("second")
        return messages.select(second, f.lit(number).alias("version"), "queueId", "queueOffset")

    return work


def job_of(topic: str, table: str, number: int) -> Job:
    return Job(
        work=versioned(number), name="again", topic=topic, table=table, time="second", every="1s"
    )


def main(namesrv: str, topic: str, table: str, first: int) -> None:
    spark = local_session("again", master="local[2]")
    job_of(topic, table, first).run(spark, namesrv)
    for number in range(first + 1, first + 1000):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        job_of(topic, table, number).again(spark, namesrv, since="2020-01-01")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
