"""The page of one broker."""

import asyncio

from consolekit import console

from gantrymq import Message, Producer
from gantrymq.testing.threaded import GantryCluster


def test_a_broker_shows_figures_settings_and_producers() -> None:
    """
    What the broker says of itself is on its page, secrets hidden; another broker is not there.
    """
    own = '{"accessKey":"brokers","secretKey":"a-secret"}'
    secret = GantryCluster(inner_client_authentication_credentials=own)

    async def look() -> None:
        async with Producer(secret.namesrv, group="shop") as producer:
            await producer.send(Message("orders", b"x"))
            found = await asyncio.to_thread(
                site.api, "GET", "/clusters/test/brokers/broker-a/0/producers"
            )
            assert ["shop"] == [each["group"] for each in found["producers"]]
            assert "shop" in await asyncio.to_thread(site.page, "/c/test/brokers/broker-a/0")

    try:
        with console(secret) as site:
            asyncio.run(look())
            found = site.api("GET", "/clusters/test/brokers/broker-a/0")
            assert "1" == found["figures"]["msgPutTotalTodayNow"]
            assert "broker-a" == found["settings"]["brokerName"]
            assert "a-secret" not in str(found)
            for path in ("broker-b/0", "broker-a/1", "127.0.0.1:9/0"):
                assert 404 == site.call("GET", f"/clusters/test/brokers/{path}").status
            assert 400 == site.call("GET", "/clusters/test/brokers/broker-a/x").status
    finally:
        secret.close()
