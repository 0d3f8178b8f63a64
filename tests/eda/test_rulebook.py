"""The shipped rulebook and playbooks, run by a real ansible-rulebook against a hub with HyperShift's CRDs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS
from tests.support.control_plane import ControlPlane
from tests.support.eda_site import TOKEN, EdaSite, eda_site, until, until_done
from tests.support.hosted_values import image_of
from tests.support.rulebook import Rulebook, rulebook

pytestmark = pytest.mark.timeout(400)


async def test_a_cluster_is_created_and_deleted_by_the_playbooks(
    site: EdaSite, book: Rulebook
) -> None:
    await site.put_order()
    await site.platform.check_ready()

    await until_done(site.ensure, book.said)

    (cluster,) = await site.clusters()
    writers = {one["manager"] for one in cluster["metadata"]["managedFields"]}
    assert "boatyard-automation" in writers
    assert "boatyard" not in writers
    # The control plane may be there before the playbook has come to its end.
    await until(site.is_over, book.said)
    (pool,) = await site.pools()
    assert pool["metadata"]["name"] == hub_names.node_pool_name(site.order, "compute")
    assert pool["spec"]["replicas"] == 0
    order = await site.order_object()
    assert hub_names.AUTOMATION_FINALIZER in order["metadata"]["finalizers"]
    assert hub_names.OPERATOR_FINALIZER in order["metadata"]["finalizers"]
    await until(site.is_unlocked, book.said)

    await until_done(site.release, book.said)

    assert await site.clusters() == []
    assert await site.run() is None
    finalizers = (await site.order_object())["metadata"]["finalizers"]
    assert hub_names.AUTOMATION_FINALIZER not in finalizers
    assert hub_names.OPERATOR_FINALIZER in finalizers
    await until(site.is_unlocked, book.said)


async def test_a_rulebook_that_dies_after_it_has_said_yes_is_asked_again(
    plane: ControlPlane, environ: dict[str, str], tmp_path: Path
) -> None:
    with rulebook(tmp_path, environ, TOKEN) as dying:
        async with eda_site(plane, dying.url, TOKEN, eda__resend_seconds="8") as site:
            await site.put_order()

            async def was_taken() -> bool:
                with suppress(Unavailable):  # a busy machine answers late
                    await site.ensure()
                run = await site.run()
                return run is not None and run.state == "sent"

            await until(was_taken)
            first = await site.run()
            dying.kill()  # acknowledged a moment ago; whatever it has begun dies with it
            assert not await site.is_over()
            dying.start()

            await until_done(site.ensure, dying.said)
            await until(site.is_over, dying.said)

            run = await site.run()
            assert run.id == first.id
            assert [line.text for line in run.story][-2:] == [
                "create-hosted-cluster sent again: nothing was heard of it",
                "succeeded",
            ]
            assert len(await site.clusters()) == 1
            await until_done(site.release, dying.said)
            assert await site.clusters() == []


async def test_a_changed_wish_is_another_run_and_a_corrected_one_too(
    site: EdaSite, book: Rulebook
) -> None:
    await site.put_order()
    await until_done(site.ensure, book.said)
    await until(site.is_over, book.said)
    first = (await site.run()).id

    await until_done(lambda: site.ensure("4.17.2"), book.said)
    (cluster,) = await site.clusters()
    assert cluster["spec"]["release"]["image"] == image_of("4.17.2")
    second = (await site.run()).id
    assert second != first

    # Taken away by hand, twice: each time a run puts it back, though nothing else is wanted.
    for _ in range(2):
        await until(site.is_over, book.said)
        labels = {"metadata": {"labels": {hub_names.ORDER: None}}}
        await site.client.merge_patch(HOSTED_CLUSTERS, site.order, labels, site.namespace)
        await until_done(lambda: site.ensure("4.17.2"), book.said)
        (cluster,) = await site.clusters()
        assert cluster["metadata"]["labels"][hub_names.ORDER] == site.order


async def test_a_deletion_takes_the_place_of_a_creation_that_was_never_carried_out(
    plane: ControlPlane, book: Rulebook
) -> None:
    async with eda_site(plane, "http://127.0.0.1:9", TOKEN) as site:
        await site.put_order()
        with pytest.raises(Unavailable):
            await site.ensure()
        assert (await site.run()).state == "recorded"
        await until_done(site.release)
        assert await site.run() is None
        assert await site.clusters() == []
