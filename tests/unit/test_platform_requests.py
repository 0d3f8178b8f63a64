"""What an order asks of its platform and of its checks, field by field.

Every field of the order has a value of its own, so that one which is lost, swapped or made up shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, cast

import pytest

from boatyard.checks.port import Subject
from boatyard.model.errors import NotFound
from boatyard.model.generated.boatyard import (
    Item,
    ItemState,
    Order,
    OrderNodeSet,
    OrderRestore,
    OrderSpec,
)
from boatyard.model.generated.osac import ClusterRest, Metadata
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting
from boatyard.orderbook.port import OrderBook
from boatyard.platforms.port import (
    HAS_NODES,
    ClusterAccess,
    DesiredCluster,
    DesiredNode,
    DesiredRestore,
    RestMode,
)
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.steps import install, validate
from boatyard.resources.orders.steps.context import StepContext
from tests.support.orders import NOW

Call = tuple[Any, ...]


@dataclass
class RecordingPlatform:
    """Answers Done, and keeps every call with its arguments."""

    calls: list[Call] = field(default_factory=list)
    owned: list[OwnedObject] = field(default_factory=list)
    releasing: Outcome = field(default_factory=Done)
    kubeconfig: str = "kubeconfig-of-the-administrator"

    async def ensure_cluster(self, key: str, desired: DesiredCluster) -> Outcome:
        self.calls.append(("ensure_cluster", key, desired))
        return Done({"version": desired.version})

    async def release_cluster(self, key: str) -> Outcome:
        self.calls.append(("release_cluster", key))
        return self.releasing

    async def ensure_node(self, key: str, cluster_key: str, node: DesiredNode) -> Outcome:
        self.calls.append(("ensure_node", key, cluster_key, node))
        return Done()

    async def release_node(self, key: str, cluster_key: str, slot: str, **how: bool) -> Outcome:
        self.calls.append(("release_node", key, cluster_key, slot, how))
        return Done()

    async def list_owned(self, prefix: str = "") -> list[OwnedObject]:
        return [owned for owned in self.owned if owned.key.startswith(prefix)]

    async def access(self, cluster_key: str) -> ClusterAccess:
        if not self.kubeconfig:
            raise NotFound("nobody is let in yet")
        return ClusterAccess("https://api", "https://console", self.kubeconfig, "admin", "word")


@dataclass
class RecordingChecks:
    needs_kubeconfig: bool = False
    questions: list[tuple[str, Subject]] = field(default_factory=list)

    async def run_check(self, name: str, subject: Subject) -> Outcome:
        self.questions.append((name, subject))
        return Done()


class Zone:
    async def resolve(self, name: str) -> str | None:
        return f"address-of-{name}"


SPEC = OrderSpec(
    cluster_name="name-of-the-cluster",
    hub="hub-7",
    version="4.17.9",
    release_image="release.invalid/image:4.17.9",
    pod_cidr="10.201.0.0/16",
    service_cidr="10.202.0.0/16",
    ssh_public_key="ssh-ed25519 key-of-the-tenant",
    pull_secret='{"auths": "of-the-tenant"}',
    template_parameters={"size": {"type": "int", "value": 5}, "mode": {"value": "fast"}},
    platform_settings={"hosted.platform": "agent"},
    node_sets={
        "workers": OrderNodeSet(host_type="type-of-workers", size=2),
        "gpus": OrderNodeSet(host_type="type-of-gpus", size=1),
        "more": OrderNodeSet(host_type="type-of-workers", size=1),
    },
    rest=ClusterRest.STOPPED,
    restore=OrderRestore(request="request-3", backup="backup-9"),
)
FACTS: Mapping[str, Mapping[str, str]] = {
    "api-name": {"name": "api.cluster.example"},
    "api-address": {"address": "198.51.100.11"},
    "ingress-name": {"name": "*.apps.cluster.example"},
    "ingress-address": {"address": "198.51.100.12"},
    "l3": {"cidr": "10.203.0.0/24", "gateway": "10.203.0.1"},
    "host/gpus-4": {"host": "r1-n8"},
    "agent/gpus-4": {"address": "10.203.0.48"},
    "host/workers-0": {"host": "r1-n2"},
    "agent/workers-0": {"address": "10.203.0.42"},
}
GPU_NODE = Item(key="node/gpus-4", kind="node", step="install", slot="gpus-4", node_set="gpus")
CLUSTER = Item(key="cluster", kind="cluster", step="install")
CLUSTER_REQUEST = {
    "name": "name-of-the-cluster",
    "version": "4.17.9",
    "release_image": "release.invalid/image:4.17.9",
    "api_name": "api.cluster.example",
    "api_address": "198.51.100.11",
    "ingress_name": "*.apps.cluster.example",
    "ingress_address": "198.51.100.12",
    "pod_cidr": "10.201.0.0/16",
    "service_cidr": "10.202.0.0/16",
    "machine_cidr": "10.203.0.0/24",
    "gateway": "10.203.0.1",
    "ssh_public_key": "ssh-ed25519 key-of-the-tenant",
    "pull_secret": '{"auths": "of-the-tenant"}',
    "parameters": {"size": 5, "mode": "fast"},
    "settings": {"hosted.platform": "agent"},
    "host_types": ("type-of-gpus", "type-of-workers"),
    "rest": RestMode.STOPPED,
    "restore": DesiredRestore(request="request-3", backup_key="backup-9/backup"),
}
NODE_REQUEST = {
    "slot": "gpus-4",
    "node_set": "gpus",
    "host": "r1-n8",
    "address": "10.203.0.48",
    "host_type": "type-of-gpus",
}
SUBJECT = {
    "cluster_key": "order-1/cluster",
    "api_name": "api.cluster.example",
    "api_address": "198.51.100.11",
    "ingress_name": "*.apps.cluster.example",
    "ingress_address": "198.51.100.12",
    "slots": ("gpus-4", "workers-0"),
    "version": "4.17.9",
    "kubeconfig": "kubeconfig-of-the-administrator",
}


def make_context(
    platform: RecordingPlatform,
    *,
    checks: RecordingChecks | None = None,
    spec: OrderSpec = SPEC,
    deleting: bool = False,
    items: tuple[Item, ...] = (),
    facts: Mapping[str, Mapping[str, str]] = FACTS,
) -> StepContext:
    metadata = Metadata(tenant="acme", deletion_timestamp=NOW if deleting else None)
    drivers = {"platform": platform, "checks": checks or RecordingChecks(), "dns": Zone()}
    unused = dict.fromkeys(("inventory", "l2", "l3"))
    present = {
        key: Item(key=key, kind=key.partition("/")[0], state=ItemState.PRESENT, facts=values)
        for key, values in facts.items()
    }
    return StepContext(
        order=Order(id="order-1", metadata=metadata, spec=spec),
        drivers=HubDrivers(**cast(Any, {**drivers, **unused})),
        book=cast(OrderBook, None),
        now=NOW,
        items={**present, **{item.key: item for item in items}},
    )


def values_of(request: Any) -> dict[str, Any]:
    """The fields of a request by name; what is nested stays as it is."""
    return {entry.name: getattr(request, entry.name) for entry in fields(request)}


def default_of(entry: Field[Any]) -> Any:
    if entry.default is not MISSING:
        return entry.default
    return entry.default_factory() if entry.default_factory is not MISSING else ""


@pytest.mark.parametrize(
    "struct, request_values, other_fields",
    [
        pytest.param(DesiredCluster, CLUSTER_REQUEST, (), id="a cluster"),
        pytest.param(DesiredNode, NODE_REQUEST, (), id="a node"),
        pytest.param(Subject, SUBJECT, ("resolve",), id="a question"),
    ],
)
def test_every_field_that_can_be_asked_for_is_compared_below(
    struct: type, request_values: Mapping[str, Any], other_fields: tuple[str, ...]
) -> None:
    """A field added to a request needs a value here: its own, and not its default."""
    defaults = {entry.name: default_of(entry) for entry in fields(struct)}

    assert {*request_values, *other_fields} == set(defaults), "each field has a value in this file"
    for name, value in request_values.items():
        assert value != defaults[name], f"{name} has its default here, so losing it would not show"
    texts = [str(value) for value in request_values.values()]
    assert len(set(texts)) == len(texts), "no two fields are alike, so swapping them shows"


async def test_the_platform_is_asked_for_the_cluster_that_was_ordered() -> None:
    platform = RecordingPlatform()

    outcome = await install.ensure_cluster(make_context(platform), CLUSTER)

    ((verb, key, request),) = platform.calls
    assert (verb, key) == ("ensure_cluster", "order-1/cluster")
    assert values_of(request) == CLUSTER_REQUEST
    assert outcome == Done({"version": "4.17.9"})


@pytest.mark.parametrize(
    "change, field_name, expected",
    [
        pytest.param({"restore": OrderRestore()}, "restore", None, id="nothing to restore"),
        pytest.param({"rest": ClusterRest.FROZEN}, "rest", RestMode.FROZEN, id="frozen"),
        pytest.param({"rest": ClusterRest.AWAKE}, "rest", RestMode.AWAKE, id="awake"),
    ],
)
async def test_the_platform_is_asked_for_the_rest_and_the_restore_of_the_order(
    change: Mapping[str, Any], field_name: str, expected: object
) -> None:
    platform = RecordingPlatform()
    values = {name: getattr(SPEC, name) for name in SPEC.__struct_fields__} | dict(change)

    await install.ensure_cluster(make_context(platform, spec=OrderSpec(**values)), CLUSTER)

    request = platform.calls[0][2]
    assert values_of(request) == CLUSTER_REQUEST | {field_name: expected}


async def test_a_network_without_a_gateway_is_passed_on_without_one() -> None:
    platform = RecordingPlatform()
    facts = {**FACTS, "l3": {"cidr": "10.203.0.0/24"}}

    await install.ensure_cluster(make_context(platform, facts=facts), CLUSTER)

    assert values_of(platform.calls[0][2]) == CLUSTER_REQUEST | {"gateway": ""}


async def test_the_platform_is_asked_for_the_node_with_its_own_host() -> None:
    platform = RecordingPlatform()

    await install.ensure_node(make_context(platform), GPU_NODE)

    ((verb, key, cluster_key, request),) = platform.calls
    assert (verb, key, cluster_key) == ("ensure_node", "order-1/node/gpus-4", "order-1/cluster")
    assert values_of(request) == NODE_REQUEST


async def test_a_node_whose_machine_the_platform_makes_has_no_host_and_no_address() -> None:
    platform = RecordingPlatform()
    facts = {key: value for key, value in FACTS.items() if "/" not in key}

    await install.ensure_node(make_context(platform, facts=facts), GPU_NODE)

    assert values_of(platform.calls[0][3]) == NODE_REQUEST | {"host": "", "address": ""}


@pytest.mark.parametrize(
    "deleting, drain",
    [
        pytest.param(False, True, id="a scale down drains"),
        pytest.param(True, False, id="a deletion does not"),
    ],
)
async def test_nodes_are_drained_when_their_cluster_stays(deleting: bool, drain: bool) -> None:
    platform = RecordingPlatform()

    outcome = await install.release_node(make_context(platform, deleting=deleting), GPU_NODE)

    key = "order-1/node/gpus-4"
    assert platform.calls == [
        ("release_node", key, "order-1/cluster", "gpus-4", {"drain": drain}),
    ]
    assert outcome == Done()


async def test_a_released_cluster_is_asked_for_by_its_key() -> None:
    platform = RecordingPlatform()

    outcome = await install.release_cluster(make_context(platform, deleting=True), CLUSTER)

    assert platform.calls == [("release_cluster", "order-1/cluster")]
    assert outcome == Done()


def nodes_left() -> RecordingPlatform:
    return RecordingPlatform(
        releasing=Waiting("the cluster still has nodes", reason=HAS_NODES),
        owned=[
            OwnedObject("order-1/cluster", "cluster", "name-of-the-cluster"),
            OwnedObject("order-1/node/gpus-4", "node", "r1-n8"),
            OwnedObject("order-2/node/gpus-5", "node", "r1-n9"),
        ],
    )


async def test_nodes_that_hold_up_the_release_of_their_cluster_are_released_too() -> None:
    """A worker that was stopped may have made a node after its release was confirmed."""
    platform = nodes_left()
    context = make_context(platform, deleting=True, items=(CLUSTER,))

    outcome = await install.release_cluster(context, CLUSTER)

    assert outcome == platform.releasing
    leaving = {key: item for key, item in context.items.items() if item.kind == "node"}
    assert leaving == {
        "node/gpus-4": Item(
            key="node/gpus-4",
            kind="node",
            step="install",
            node_set="gpus",
            slot="gpus-4",
            state=ItemState.LEAVING,
        )
    }


@pytest.mark.parametrize("outcome", [Done(), Waiting("it takes its time")], ids=["gone", "going"])
async def test_nothing_is_looked_for_while_the_release_of_a_cluster_goes_on(
    outcome: Outcome,
) -> None:
    platform = replace(nodes_left(), releasing=outcome)
    context = make_context(platform, deleting=True)

    assert await install.release_cluster(context, CLUSTER) == outcome
    assert not [item for item in context.items.values() if item.kind == "node"]


def node_item(slot: str, state: ItemState) -> Item:
    return Item(key=f"node/{slot}", kind="node", step="install", slot=slot, state=state)


QUESTION = Item(key="check/api@3", kind="check", step="validate", facts={"check": "api"})
NODES = (
    node_item("workers-0", ItemState.PRESENT),
    node_item("gpus-4", ItemState.PRESENT),
    node_item("workers-1", ItemState.LEAVING),
)


async def test_a_check_is_asked_about_the_cluster_and_every_node_that_stays() -> None:
    platform, checks = RecordingPlatform(), RecordingChecks(needs_kubeconfig=True)
    context = make_context(platform, checks=checks, items=NODES)

    outcome = await validate.ensure_check(context, QUESTION)

    ((name, subject),) = checks.questions
    resolve = subject.resolve
    assert (name, outcome) == ("api", Done())
    assert values_of(subject) == SUBJECT | {"resolve": resolve}
    assert resolve is not None
    assert await resolve("api.cluster.example") == "address-of-api.cluster.example"


async def test_a_check_that_needs_no_kubeconfig_is_given_none() -> None:
    platform, checks = RecordingPlatform(kubeconfig=""), RecordingChecks()

    await validate.ensure_check(make_context(platform, checks=checks, items=NODES), QUESTION)

    ((_, subject),) = checks.questions
    assert subject.kubeconfig == ""


async def test_a_check_that_needs_a_kubeconfig_waits_until_there_is_one() -> None:
    platform, checks = RecordingPlatform(kubeconfig=""), RecordingChecks(needs_kubeconfig=True)
    context = make_context(platform, checks=checks, items=NODES)

    outcome = await validate.ensure_check(context, QUESTION)

    assert isinstance(outcome, Waiting)
    assert outcome.reason == "NoAccess"
    assert checks.questions == []
