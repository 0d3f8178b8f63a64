"""The shipped rulebook and playbooks, run by a real ansible-rulebook against a hub with HyperShift's CRDs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.eda_environment import (
    TOKEN,
    EdaEnvironment,
    eda_environment,
    until,
    until_done,
)
from tests.support.kube_hub.hosted_values import image_of
from tests.support.kube_hub.rulebook import Rulebook, rulebook

pytestmark = pytest.mark.timeout(400)


async def test_a_cluster_is_created_and_deleted_by_the_playbooks(
    environment: EdaEnvironment, book: Rulebook
) -> None:
    await environment.put_order()
    await environment.platform.check_ready()

    await until_done(environment.ensure, book.said)

    (cluster,) = await environment.clusters()
    writers = {one["manager"] for one in cluster["metadata"]["managedFields"]}
    assert "boatyard-automation" in writers
    assert "boatyard" not in writers
    # The control plane may be there before the playbook has come to its end.
    await until(environment.is_over, book.said)
    (pool,) = await environment.pools()
    assert pool["metadata"]["name"] == hub_names.node_pool_name(environment.order, "compute")
    assert pool["spec"]["replicas"] == 0
    order = await environment.order_object()
    assert hub_names.AUTOMATION_FINALIZER in order["metadata"]["finalizers"]
    assert hub_names.OPERATOR_FINALIZER in order["metadata"]["finalizers"]
    await until(environment.is_unlocked, book.said)

    await until_done(environment.release, book.said)

    assert await environment.clusters() == []
    assert await environment.run() is None
    finalizers = (await environment.order_object())["metadata"]["finalizers"]
    assert hub_names.AUTOMATION_FINALIZER not in finalizers
    assert hub_names.OPERATOR_FINALIZER in finalizers
    await until(environment.is_unlocked, book.said)


async def test_a_rulebook_that_dies_after_it_has_said_yes_is_asked_again(
    plane: ControlPlane, environ: dict[str, str], tmp_path: Path
) -> None:
    with rulebook(tmp_path, environ, TOKEN) as killed_rulebook:
        async with eda_environment(
            plane, killed_rulebook.url, TOKEN, eda__resend_seconds="8"
        ) as environment:
            await environment.put_order()

            async def was_taken() -> bool:
                with suppress(Unavailable):  # a busy machine answers late
                    await environment.ensure()
                run = await environment.run()
                return run is not None and run.state == "sent"

            await until(was_taken)
            first = await environment.run()
            killed_rulebook.kill()  # acknowledged a moment ago; whatever it has begun dies with it
            assert not await environment.is_over()
            killed_rulebook.start()

            await until_done(environment.ensure, killed_rulebook.said)
            await until(environment.is_over, killed_rulebook.said)

            run = await environment.run()
            assert run.id == first.id
            assert [line.text for line in run.story][-2:] == [
                "create-hosted-cluster sent again: nothing was heard of it",
                "succeeded",
            ]
            assert len(await environment.clusters()) == 1
            await until_done(environment.release, killed_rulebook.said)
            assert await environment.clusters() == []


async def test_a_changed_wish_is_another_run_and_a_corrected_one_too(
    environment: EdaEnvironment, book: Rulebook
) -> None:
    await environment.put_order()
    await until_done(environment.ensure, book.said)
    await until(environment.is_over, book.said)
    first = (await environment.run()).id

    await until_done(lambda: environment.ensure("4.17.2"), book.said)
    (cluster,) = await environment.clusters()
    assert cluster["spec"]["release"]["image"] == image_of("4.17.2")
    second = (await environment.run()).id
    assert second != first

    # Taken away by hand, twice: each time a run puts it back, though nothing else is wanted.
    for _ in range(2):
        await until(environment.is_over, book.said)
        labels = {"metadata": {"labels": {hub_names.ORDER: None}}}
        await environment.client.merge_patch(
            HOSTED_CLUSTERS, environment.order, labels, environment.namespace
        )
        await until_done(lambda: environment.ensure("4.17.2"), book.said)
        (cluster,) = await environment.clusters()
        assert cluster["metadata"]["labels"][hub_names.ORDER] == environment.order


async def test_a_deletion_takes_the_place_of_a_creation_that_was_never_carried_out(
    plane: ControlPlane, book: Rulebook
) -> None:
    async with eda_environment(plane, "http://127.0.0.1:9", TOKEN) as environment:
        await environment.put_order()
        with pytest.raises(Unavailable):
            await environment.ensure()
        assert (await environment.run()).state == "recorded"
        await until_done(environment.release)
        assert await environment.run() is None
        assert await environment.clusters() == []
