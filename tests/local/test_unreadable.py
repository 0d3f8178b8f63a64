"""One cluster whose record was damaged: it is told and left alone, and the others are kept as ever."""

from __future__ import annotations

import os
import signal

import pytest

from boatyard.model.errors import Unavailable
from tests.support.local_cluster import LocalCluster
from tests.support.local_site import LocalSite, until

pytestmark = pytest.mark.timeout(240)


async def test_a_damaged_record_stops_no_other_cluster(site: LocalSite) -> None:
    broken, good = LocalCluster(site, "order-1"), LocalCluster(site, "order-2")
    for cluster in (broken, good):
        await cluster.ensure()
        await cluster.until_whole()
    before = broken.running()

    await site.keeper.end(signal.SIGKILL)
    record = broken.directory / "cluster.json"
    whole = record.read_bytes()
    record.write_bytes(whole[:100])
    os.kill(good.running()["kube-scheduler-0"][0], signal.SIGKILL)
    await site.keeper.start()

    await until(good.is_whole, "the other cluster has its scheduler again")
    await good.ensure()
    for ask in (
        broken.platform.observe(broken.key),
        broken.platform.ensure_cluster(broken.key, broken.wanted),
        broken.platform.release_cluster(broken.key),
    ):
        with pytest.raises(Unavailable, match=str(record)):
            await ask
    assert record.read_bytes() == whole[:100]
    assert broken.running() == before, "nobody of it was ended"

    record.write_bytes(whole)
    await site.keeper.kill_and_start()
    await broken.ensure()
    assert broken.running() == before
