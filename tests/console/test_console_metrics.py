"""The console's own metrics, as Prometheus reads them."""

from pathlib import Path

from consolekit import console, until
from prometheus_client.parser import text_string_to_metric_families

from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile
from gantrymq.console.settings import LoginKind
from gantrymq.metrics import table
from gantrymq.testing.threaded import GantryCluster


def test_prometheus_reads_requests_and_clusters(gantry: GantryCluster) -> None:
    """
    Requests are counted by kind and class of the answer; a cluster that answers is up, one that
    does not is down.
    """
    with console(gantry, "127.0.0.1:9") as site:
        site.page("/c/test/topics")
        assert 404 == site.ask("GET", "/nowhere").status

        def values() -> dict[tuple[str, ...], float]:
            families = text_string_to_metric_families(site.page("/metrics"))
            return {
                (each.name, *(v for k, v in sorted(each.labels.items()) if k in WANTED)): each.value
                for family in families
                for each in family.samples
            }

        until(lambda: values().get((table.CONSOLE_CLUSTERS.name, "test-1")) == 0)
        found = values()
        assert 1 == found[table.CONSOLE_CLUSTERS.name, "test"]
        assert found[f"{table.CONSOLE_REQUESTS.name}_count", "page", "2xx"] >= 1
        assert found[f"{table.CONSOLE_REQUESTS.name}_count", "page", "4xx"] == 1
        assert found[table.RESIDENT.name,] > 0
        assert f'node_id="{site.url.removeprefix("http://")}"' in site.page("/metrics")


WANTED = {"kind", "status", "cluster_name"}


def test_metrics_need_the_login(gantry: GantryCluster, tmp_path: Path) -> None:
    """
    Where people log in Prometheus needs a user, too, and a reader will do.
    """
    UsersFile(tmp_path / "users.json").put("prometheus", Role.READER, "long enough")
    with console(gantry, data=tmp_path, login=LoginKind.USERS) as site:
        refused = site.ask("GET", "/metrics")
        assert (401, True) == (refused.status, "www-authenticate" in refused.headers)
        site.headers["authorization"] = "Basic cHJvbWV0aGV1czpsb25nIGVub3VnaA=="
        assert "gantrymq_console_cluster_up" in site.page("/metrics")
