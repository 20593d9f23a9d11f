"""`gantry pipeline bundle`: write a file with the code that executors of a cluster need."""

from pathlib import Path

import click

from gantrymq.cli.pipeline.spark_run import Run


@click.command("bundle")
@click.option(
    "--into",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File to write: .zip or .tar.gz.",
)
def bundle(target: Path) -> None:
    """Write the file that `--bundle` hands to the executors of a cluster.

    NAME.zip holds gantrymq alone: the executors must have numpy, pyarrow and msgspec. NAME.tar.gz
    holds these too: the executors need nothing but the same version of Python on the same kind of
    machine. The settings by which `spark-submit` uses the file are printed.
    """
    with Run().ending():
        from gantrymq.spark.runtime.bundle import bundle_settings, make_bundle

        settings = bundle_settings(str(target))
        try:
            make_bundle(target)
        except OSError as error:
            raise click.ClickException(f"cannot write {target}: {error.strerror}") from error
        for key, value in settings.items():
            click.echo(f"--conf {key}={value}")
