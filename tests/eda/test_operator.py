"""Operator, rulebook and playbooks together, each under the rights that are shipped for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from boatyard.automation.external_runs import RUN_LABEL
from boatyard.kube.kinds import CLUSTER_ROLES, LEASES, SECRETS
from boatyard.model import hub_names
from boatyard.model.generated.boatyard import OrderNodeSet, OrderPhase, OrderSpec, StepState
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS, NODE_POOLS
from tests.support.control_plane import ControlPlane, free_port
from tests.support.kube_hub.audit import Audit, rights_of
from tests.support.kube_hub.eda_environment import (
    RIGHTS,
    SECRET,
    TOKEN,
    EdaEnvironment,
    until,
    until_done,
)
from tests.support.kube_hub.environment import DEPLOY, KINDS, KubeHubEnvironment
from tests.support.kube_hub.hosted_values import SETTINGS, image_of
from tests.support.kube_hub.rulebook import Rulebook

pytestmark = pytest.mark.timeout(400)
ID = "c-1"


async def test_the_playbooks_need_all_of_the_shipped_rights_and_no_more(
    environment: EdaEnvironment, book: Rulebook, plane: ControlPlane, account: tuple[str, str]
) -> None:
    await environment.put_order()
    # A dead one's lock stands in the way: it is looked at, and broken.
    lock = {"metadata": {"name": f"cluster-{environment.order}-lock"}}
    await environment.client.create(LEASES, lock, environment.place.shared_namespace)
    await until_done(environment.ensure, book.said)
    await until(environment.is_over, book.said)
    await until_done(environment.release, book.said)
    await until(environment.is_unlocked, book.said)

    audit = Audit(plane, f"{account[0]}:boatyard-automation")
    assert audit.refused() == []
    shipped = yaml.safe_load_all(RIGHTS.read_text())
    granted = rights_of(one for one in shipped if one["metadata"]["name"] == "boatyard-automation")
    assert granted - audit.used() == set(), "granted, and never used"
    assert audit.used() - granted == set()


async def operator_account(hub: KubeHubEnvironment) -> dict[str, Any]:
    """A kubeconfig of the operator's account with all that is shipped for it."""
    kubeconfig = await hub.account("boatyard-operator")
    for file in ("hosted", "eda"):
        for one in hub.manifests(f"{DEPLOY}/rbac/{file}.yaml"):
            about = one["metadata"]
            await hub.client.apply(
                KINDS[one["kind"]], about["name"], one, about.get("namespace", "")
            )
    return kubeconfig


async def test_an_order_is_carried_out_by_operator_and_playbooks(
    plane: ControlPlane, book: Rulebook
) -> None:
    port = free_port()
    async with KubeHubEnvironment.open(plane) as hub:
        kubeconfig = await operator_account(hub)
        secret = {"metadata": {"name": SECRET}, "stringData": {"token": TOKEN}}
        await hub.client.create(SECRETS, secret, hub.system)
        settings = {
            **SETTINGS["KubeVirt"],
            "eda.url": book.url,
            "eda.callback-url": f"http://127.0.0.1:{port}",
            "eda.secret": SECRET,
        }
        await hub.register({"platform": "hosted", "automation": "eda"}, **settings)
        spec = OrderSpec(
            cluster_name="web",
            hub=hub.place.hub,
            version="4.17.1",
            release_image=image_of("4.17.1"),
            pull_secret='{"auths":{}}',
            node_sets={"compute": OrderNodeSet(host_type="bm-small", size=1)},
            pod_cidr="10.128.0.0/14",
            service_cidr="172.30.0.0/16",
            generation=1,
        )
        await hub.book.put(ID, tenant="acme", spec=spec, now=datetime.now(UTC))
        order = hub_names.order_name(ID)
        namespace = hub_names.cluster_namespace(hub.place.shared_namespace, order)

        async def is_installed() -> bool:
            steps = {step.name: step.state for step in (await hub.order(ID)).status.steps}
            return steps.get("install") == StepState.DONE

        async def is_deleted() -> bool:
            found = await hub.book.get(ID)
            return found is None or found.status.phase == OrderPhase.DELETED

        async with hub.operator(kubeconfig, callbacks=f"127.0.0.1:{port}"):
            await until(is_installed, book.said)
            cluster = await hub.client.get(HOSTED_CLUSTERS, order, namespace)
            writers = {one["manager"] for one in cluster["metadata"]["managedFields"]}
            assert "boatyard-automation" in writers
            assert "boatyard-operator" not in writers
            (pool,) = (await hub.client.list(NODE_POOLS, namespace)).items
            assert pool["spec"]["replicas"] == 1
            (held,) = (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items
            assert hub_names.AUTOMATION_FINALIZER in held["metadata"]["finalizers"]

            await hub.delete(ID)
            await until(is_deleted, book.said)
            await hub.book.forget(ID, now=datetime.now(UTC))
        assert (await hub.client.list(HOSTED_CLUSTERS, namespace)).items == []
        runs = await hub.client.list(SECRETS, hub.system, labels=f"{RUN_LABEL}=true")
        assert runs.items == []
        assert (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items == []


def test_every_role_that_is_bound_is_shipped() -> None:
    documents = list(yaml.safe_load_all(RIGHTS.read_text()))
    made = {(one["kind"], one["metadata"]["name"]) for one in documents}
    for one in documents:
        if one["kind"].endswith("Binding"):
            assert (one["roleRef"]["kind"], one["roleRef"]["name"]) in made
    assert CLUSTER_ROLES.kind in {kind for kind, _ in made}
