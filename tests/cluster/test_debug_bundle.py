"""`gantry debug bundle`: what is in the archive, what is not, and that it has no secrets."""

import json
import tarfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gantrymq.cli.main import main
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.threaded import GantryCluster


def make(path: Path, namesrv: str, code: int = 0) -> tuple[dict[str, bytes], str]:
    """The files of a bundle by name, and what was said about it."""
    found = CliRunner().invoke(main, ["debug", "bundle", "-n", namesrv, "-f", str(path)])
    assert code == found.exit_code, found.output
    with tarfile.open(path) as archive:
        files = {
            entry.name.partition("/")[2]: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in archive
        }
    return files, found.stderr


def table(files: dict[str, bytes], name: str) -> Any:
    return json.loads(files[name])


async def set_up(cluster: Cluster, logs: Path) -> None:
    await cluster.create_topic("orders")
    config = cluster.broker().config
    address = f"127.0.0.1:{config.listen_port}"
    async with cluster.admin() as admin:
        url = "https://bob:hunter2@example.org/region"
        await admin.update_broker_config(address, {"regionId": url})
    config.log_directory = str(logs)


def test_a_bundle_has_everything_but_secrets(gantry: GantryCluster, tmp_path: Path) -> None:
    """
    Settings, tables, figures, findings and logs of this machine; a secret of a setting and of a
    log is in none of its bytes.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "broker.log").write_text(
        "regionId=https://bob:hunter2@example.org\nsecretKey=hunter2\n"
    )
    gantry.call(set_up(gantry.cluster, logs))
    files, said = make(tmp_path / "bundle.tar.gz", gantry.namesrv)

    assert {
        "versions.json", "machine.json", "cluster.json", "topics.json", "name-servers.json",
        "doctor.json", "missing.json", "logs/broker-a-0/broker.log",
    } <= files.keys()  # fmt: skip
    mine = {name.rpartition("/")[2] for name in files if name.startswith("brokers/broker-a-0/")}
    assert {
        "settings.json", "runtime.json", "ha.json", "topics.json", "groups.json", "offsets.json",
        "progress.json", "producers.json", "statistics.json",
    } == mine  # fmt: skip
    assert not [name for name, data in files.items() if b"hunter2" in data]
    settings = table(files, "brokers/broker-a-0/settings.json")
    assert "https://***@example.org/region" == settings["regionId"]
    assert b"secretKey=***" in files["logs/broker-a-0/broker.log"]
    assert "orders" in table(files, "topics.json")
    assert "broker broker-a:0 at 127.0.0.1" in said


def test_what_cannot_be_had_is_listed_with_the_reason(
    gantry: GantryCluster, tmp_path: Path
) -> None:
    """
    Logs to standard error are no files, and the bundle says so; it is written all the same.
    """
    files, _ = make(tmp_path / "bundle.tar.gz", gantry.namesrv)
    assert "logs to standard error" in table(files, "missing.json")["logs/broker-a-0"]


def test_without_a_cluster_the_machine_is_in_the_bundle(tmp_path: Path) -> None:
    """
    Exit code 1 and one line, and an archive with what this machine knows.
    """
    files, said = make(tmp_path / "bundle.tar.gz", "127.0.0.1:1", code=1)
    assert "versions.json" in files
    assert "no name server" in table(files, "missing.json")["brokers"]
    assert 1 == said.count("error: the bundle has nothing of the cluster")


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    """
    Neither is a folder made; nothing is left behind.
    """
    path = tmp_path / "bundle.tar.gz"
    path.write_text("mine")
    for file, text in ((path, "exists; name another"), (tmp_path / "no/x", "is no folder")):
        found = CliRunner().invoke(main, ["debug", "bundle", "-n", "127.0.0.1:1", "-f", str(file)])
        assert 1 == found.exit_code
        assert text in found.stderr
    assert ("mine", [path]) == (path.read_text(), list(tmp_path.iterdir()))
