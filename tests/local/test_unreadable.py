"""One cluster whose record was damaged: it is told and left alone, and the others are kept as ever."""

from __future__ import annotations

import os
import signal

import pytest

from boatyard.model.errors import Unavailable
from tests.support.real_clusters.environment import LocalEnvironment, until
from tests.support.real_clusters.local_cluster import LocalCluster

pytestmark = pytest.mark.timeout(240)


async def test_a_damaged_record_stops_no_other_cluster(environment: LocalEnvironment) -> None:
    broken, good = LocalCluster(environment, "order-1"), LocalCluster(environment, "order-2")
    for cluster in (broken, good):
        await cluster.ensure()
        await cluster.until_whole()
    before = broken.running()

    await environment.keeper.end(signal.SIGKILL)
    record = broken.directory / "cluster.json"
    whole = record.read_bytes()
    record.write_bytes(whole[:100])
    os.kill(good.running()["kube-scheduler-0"][0], signal.SIGKILL)
    await environment.keeper.start()

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
    await environment.keeper.kill_and_start()
    await broken.ensure()
    assert broken.running() == before
