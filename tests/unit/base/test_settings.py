"""Settings as they stand in files: where errors point, and what a change leaves alone."""

from pathlib import Path

import pytest

from gantrymq.base.config import WrittenSettings, parse_properties, replace_properties
from gantrymq.base.errors import ConfigError
from gantrymq.broker.settings.config import BrokerConfig, broker_config
from gantrymq.nameserver.config import nameserver_config

MASTER = "brokerClusterName={0}\nbrokerName={1}\nbrokerId=0\ndeleteWhen=04\nfileReservedTime=48\n"
SLAVE = "brokerName=broker-a\nbrokerId=1\ndeleteWhen=04\nbrokerRole=SLAVE\n"
RAFT = (
    "brokerName=RaftNode00\nlistenPort=30911\nenableDLegerCommitLog=true\ndLegerGroup=RaftNode00\n"
)
ELECTED = "brokerName=broker-a\nbrokerId=-1\nbrokerRole=SLAVE\nenableControllerMode = true\n"
IN_CONTAINER = "brokerId=0\nbrokerRole=SYNC_MASTER\ntotalReplicas=2\nenableSlaveActingMaster=true\n"
CONTAINER = "listenPort=10811\nbrokerConfigPaths=/a/broker-a.conf:/a/broker-b.conf\n"
CONTROLLER = "controllerDLegerGroup = group1\ncontrollerDLegerSelfId = n0\n"
COMMENTED = "<!--\n  Licensed under some terms\n-->\nenableControllerInNamesrv = true\n"


class TestRocketmqsSampleFiles:
    """What the files in RocketMQ's `distribution/conf` say, of 4.9.7 and 5.3.3."""

    @pytest.mark.parametrize(
        "role",
        ["brokerRole=ASYNC_MASTER\nflushDiskType=ASYNC_FLUSH\n", "brokerRole = ASYNC_MASTER\n"],
    )
    @pytest.mark.parametrize("name", ["broker-a", "broker-b", "broker-trace"])
    def test_masters_start(self, name: str, role: str) -> None:
        """
        broker.conf, 2m-noslave and the masters of 2m-2s-async.
        """
        found = broker_config(
            WrittenSettings.in_text(MASTER.format("DefaultCluster", name) + role, "b")
        )

        assert (name, 48, 0) == (found.broker_name, found.file_reserved_time, found.broker_id)

    @pytest.mark.parametrize(
        "text, role, broker_id",
        [
            (SLAVE, "SLAVE", 1),
            ("brokerId=0\nbrokerRole=SYNC_MASTER\n", "SYNC_MASTER", 0),
            (IN_CONTAINER, "SYNC_MASTER", 0),
        ],
    )
    def test_slaves_and_their_masters_start(self, text: str, role: str, broker_id: int) -> None:
        """
        The files of 2m-2s-async and 2m-2s-sync are taken as they are.
        """
        found = broker_config(WrittenSettings.in_text(text, "b"))

        assert (role, broker_id) == (found.broker_role, found.broker_id)

    def test_a_member_of_a_raft_group_starts(self) -> None:
        """
        A file as those of conf/dledger is taken as it is.
        """
        members = "n0-10.0.0.1:40911;n1-10.0.0.2:40911;n2-[::1]:40911"
        text = f"{RAFT}dLegerPeers={members}\ndLegerSelfId=n1\n"
        found = broker_config(WrittenSettings.in_text(text, "b"))

        assert (("n0", "n1", "n2"), 1) == (
            found.group_identity.members,
            found.group_identity.number,
        )

    @pytest.mark.parametrize(
        "peers, me, advice",
        [
            ("", "n0", "is not in dLegerPeers, which names nobody"),
            ("n0-a:1;n1-b:1;n2-c:1", "n3", "is not in dLegerPeers, which names n0, n1, n2"),
            ("n0-a:1;n0-b:1;n2-c:1", "n0", "give every member its own id"),
            ("n0-a:1;n1-a:1;n2-c:1", "n0", "has the address of 'n1-a:1' twice"),
            ("n0-a:1;n1-b:1", "n0", "a group has 3 or 5"),
            ("n0-a;n1-b:1;n2-c:1", "n0", "'n0-a' is no member; write n0-host:port"),
            ("n0-a:99999;n1-b:1;n2-c:1", "n0", "'n0-a:99999' is no member"),
        ],
    )
    def test_wrong_members_of_a_raft_group_are_refused(
        self, peers: str, me: str, advice: str
    ) -> None:
        """
        Each with what to write instead.
        """
        text = f"{RAFT}dLegerPeers={peers}\ndLegerSelfId={me}\n"
        with pytest.raises(ConfigError) as refused:
            broker_config(WrittenSettings.in_text(text, "b"))

        assert advice in str(refused.value)

    @pytest.mark.parametrize(
        "text, setting, line, advice",
        [
            (ELECTED, "enableControllerMode=true", 4, "remove the line"),
            (CONTAINER, "brokerConfigPaths=", 2, "start mqbroker -c for each"),
            ("accessKey: rocketmq2\n", "unknown setting accessKey", 1, "remove it"),
            (
                "globalWhiteRemoteAddresses:\n  - 10.*\n",
                "unknown setting globalWhite",
                1,
                "remove it",
            ),
        ],
    )
    def test_what_no_broker_can_be_is_refused_by_a_line(
        self, text: str, setting: str, line: int, advice: str
    ) -> None:
        """
        Raft groups, elected brokers, containers, files of tools.
        """
        with pytest.raises(ConfigError) as refused:
            broker_config(WrittenSettings.in_text(text, "conf/x.conf"))
        said = str(refused.value)

        assert said.startswith(setting)
        assert f"(conf/x.conf, line {line})" in said
        assert advice in said
        assert "\n" not in said

    @pytest.mark.parametrize(
        "text, setting, line",
        [
            (CONTROLLER, "controllerDLegerGroup=group1", 1),
            ("enableControllerInNamesrv = true\n" + CONTROLLER, "enableControllerInNamesrv", 1),
            (COMMENTED, "enableControllerInNamesrv=true", 4),
        ],
    )
    def test_a_name_server_is_no_controller(self, text: str, setting: str, line: int) -> None:
        """
        The files of `controller`, one of which has a comment that is none.
        """
        with pytest.raises(ConfigError, match=rf"{setting}.*\(n.conf, line {line}\).*remove"):
            nameserver_config(WrittenSettings.in_text(text, "n.conf"))

    def test_a_name_server_beside_containers_starts(self) -> None:
        """
        `supportActingMaster=true` asks for nothing that a cluster of masters needs.
        """
        assert (
            9876
            == nameserver_config(
                WrittenSettings.in_text("supportActingMaster=true\n", "n")
            ).listen_port
        )

    def test_the_proxys_file_is_said_to_be_json(self) -> None:
        """
        Instead of an unknown setting called `{`.
        """
        with pytest.raises(
            ConfigError, match=r"rmq-proxy.json, line 1: this is JSON; write a line"
        ):
            WrittenSettings.in_text(
                '{\n  "rocketMQClusterName": "DefaultCluster"\n}\n', "rmq-proxy.json"
            )


class TestErrors:
    @pytest.mark.parametrize(
        "text, said",
        [
            ("a=1\n", "unknown setting a (b.conf, line 1); remove it"),
            ("#\n\nflushDiskTpye=X", "(b.conf, line 3); did you mean flushDiskType?"),
            ("\nlistenPort=x", "listenPort=x (b.conf, line 2): write a whole number"),
            (
                "listenPort=70000",
                "listenPort=70000: write a number from 0 to 65535 (b.conf, line 1)",
            ),
            ("cleanResourceInterval=0", "write a number of at least 1 (b.conf, line 1)"),
            ("diskMaxUsedSpaceRatio=750", "write a number from 0 to 100 (b.conf, line 1)"),
            ("mappedFileSizeCommitLog=5", "write 0, or a multiple of 512 from 4096 on (b.conf"),
            ("deleteWhen=noon", "write hours from 00 to 23, separated by semicolons (b.conf"),
            ("namesrvAddr=a:1;b:x", "namesrvAddr: 'b:x' is no address: write host:port (b.conf"),
            ("flushDiskType=NEVER", "(b.conf, line 1): write ASYNC_FLUSH or SYNC_FLUSH"),
            ("longPollingEnable=2", "longPollingEnable=2 (b.conf, line 1): write true or false"),
            ("brokerName=a\\\n b\nmessageDelayLevel=1x", "'1x' is not a number"),
            ("brokerName=a\\\n b\nmessageDelayLevel=1x", "(b.conf, line 3)"),
            (
                "brokerId=3",
                "brokerId=3: a master has 0; for a slave write brokerRole=SLAVE (b.conf",
            ),
            ("brokerRole=SLAVE", "brokerRole=SLAVE: give it a brokerId of 1 or more"),
            ("haMasterAddress=here", "haMasterAddress: 'here' is no address: write host:port (b."),
            ("useTLS=true", "useTLS=true (b.conf, line 1): write tls.enable=true"),
            ("storeType=defaultRocksDB", "storeType=defaultRocksDB (b.conf, line 1)"),
        ],
    )
    def test_name_the_file_the_line_and_what_to_write(self, text: str, said: str) -> None:
        """
        Lines are counted as an editor counts them.
        """
        with pytest.raises(ConfigError) as refused:
            broker_config(WrittenSettings.in_text(text, "b.conf"))

        assert said in str(refused.value)

    @pytest.mark.parametrize(
        "text", ["listenPort=99999", "listenPort=-1", "scanNotActiveBrokerInterval=0"]
    )
    def test_a_name_server_has_limits_too(self, text: str) -> None:
        """
        A port beyond the end was taken for another one.
        """
        with pytest.raises(ConfigError, match=rf"{text.split('=')[0]}.* \(n.conf, line 1\)"):
            nameserver_config(WrittenSettings.in_text(text, "n.conf"))

    def test_a_file_that_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        """
        Missing, a folder, or no text.
        """
        (tmp_path / "binary").write_bytes(b"\xff\xfe")
        for name in ("missing", ".", "binary"):
            with pytest.raises(ConfigError, match=f"cannot read {tmp_path}/{name}"):
                WrittenSettings.in_file(f"{tmp_path}/{name}")

    def test_the_command_line_stands_above_the_file(self) -> None:
        """
        And an error names it.
        """
        file = WrittenSettings.in_text("listenPort=1\nbrokerName=b\n", "b.conf")
        both = file | WrittenSettings({"listenPort": "x"}, {"listenPort": "-D"})

        with pytest.raises(ConfigError, match=r"listenPort=x \(-D\)"):
            broker_config(both)


class TestChangedFiles:
    def test_only_the_named_lines_change(self) -> None:
        """
        Comments, order and everything else stay; a new setting goes to the end.
        """
        before = "# mine\nfileReservedTime = 48\n\ndeleteWhen=04\n"
        after = replace_properties(before, {"fileReservedTime": "72", "maxMessageSize": "9"})

        assert "# mine\nfileReservedTime=72\n\ndeleteWhen=04\nmaxMessageSize=9\n" == after

    @pytest.mark.parametrize("value", ["a\\b", " leading", "x=y:z", "#", "a\nb", ""])
    def test_every_value_reads_back(self, value: str) -> None:
        """
        Also where the setting stands twice, or over several lines.
        """
        after = replace_properties("key=1\nother=2\nkey=a\\\n  b\\\n  c\n", {"key": value})

        assert {"other": "2", "key": value} == parse_properties(after)
        assert 2 == len(after.splitlines())

    def test_low_disk_rules_have_keys(self) -> None:
        """
        RocketMQ's names, in percent.
        """
        text = "diskMaxUsedSpaceRatio=50\ndiskSpaceCleanForciblyRatio=60\ndeleteFileBatchMax=3\n"
        found = broker_config(
            WrittenSettings.in_text(f"{text}diskSpaceWarningLevelRatio=70\n", "b")
        ).store

        assert (0.5, 0.6, 0.7, 3) == (
            found.disk_clean_ratio, found.disk_force_ratio, found.disk_refuse_ratio,
            found.delete_batch_max,
        )  # fmt: skip
        assert (0.75, 0.85, 0.9) == (
            BrokerConfig().store.disk_clean_ratio, BrokerConfig().store.disk_force_ratio,
            BrokerConfig().store.disk_refuse_ratio,
        )  # fmt: skip
