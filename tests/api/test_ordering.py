"""What an order becomes, and what versions, hubs and names mean.

Numbers in names are defects of the contract's own service that we must not have.
"""

from __future__ import annotations

import asyncio

import pytest

from boatyard.model.generated.osac import Cluster
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment
from tests.api.roles import BY_KIND, CLUSTERS, As

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_order_is_completed_from_its_template(member: As) -> None:
    made = await member.cluster(node_sets={"compute": {"size": 7}})
    spec = made["spec"]
    assert spec["template"] == {"id": "ocp", "name": "ocp"}
    assert spec["node_sets"] == {
        "compute": {"host_type": {"id": "small", "name": "small"}, "size": 7},
        "gpu": {"host_type": {"id": "large", "name": "large"}, "size": 1},
    }
    assert spec["template_parameters"] == {"motd": {"@type": samples.STRING, "value": "hello"}}
    assert spec["version"]["name"] == "v4-17-1", "the default one"
    assert spec["pull_secret"] == "***"
    assert made["status"]["state"] == "CLUSTER_STATE_PROGRESSING"
    assert made["metadata"]["generation"] == "1"
    assert made["metadata"]["tenant"] == "acme"


async def test_an_order_is_due_at_once_and_carries_its_finalizer(
    member: As, environment: ApiEnvironment
) -> None:
    made = await member.cluster()
    stored = await environment.ledger.documents.get(Cluster, made["id"])
    assert stored is not None
    assert stored.metadata.finalizers == ("boatyard.io/order",)
    assert stored.spec.pull_secret == "from-the-template"
    leases = await environment.ledger.work.take(
        kinds=["Cluster"],
        limit=1000,
        lease_seconds=1,
        worker="w",
        now=environment.ledger.clock.now(),
    )
    assert made["id"] in {lease.id for lease in leases}


async def test_ranges_have_one_spelling(member: As) -> None:
    made = await member.cluster(
        network={"pod_cidr": "10.128.5.7/14", "service_cidr": "FD00::1/112"}
    )
    assert made["spec"]["network"] == {"pod_cidr": "10.128.0.0/14", "service_cidr": "fd00::/112"}


async def test_a_disabled_or_obsolete_version_cannot_be_ordered(member: As, operator: As) -> None:
    for spec in ({"enabled": False}, {"state": "CLUSTER_VERSION_STATE_OBSOLETE"}):
        version = BY_KIND["ClusterVersion"].fresh()
        version["spec"] |= spec
        made = await operator(f"{PRIVATE}.ClusterVersions", "Create", object=version)
        failed = await member.refused(
            CLUSTERS,
            "Create",
            object=samples.cluster("x", version={"name": made["metadata"]["name"]}),
        )
        assert "spec.version" in failed.violations


async def test_14_the_tenants_own_comes_before_the_shared_one(member: As, operator: As) -> None:
    shared = BY_KIND["ClusterTemplate"].fresh()
    own = {**shared, "id": f"{shared['id']}-own"}
    own["metadata"] = {**shared["metadata"], "tenant": "acme"}
    for template in (shared, own):
        await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    name = shared["metadata"]["name"]
    assert (await member.cluster(template={"name": name}))["spec"]["template"]["id"] == own["id"]
    chosen = await member.cluster(template={"name": name, "shared": True})
    assert chosen["spec"]["template"]["id"] == shared["id"]
    elsewhere = await As.__call__(
        operator,
        CLUSTERS,
        "Create",
        object={
            "metadata": {"name": f"for-globex-{member._door.name}", "tenant": "globex"},
            "spec": {"template": {"name": name}},
        },
    )
    assert elsewhere["spec"]["template"]["id"] == shared["id"]


async def test_there_is_one_default_version(operator: As) -> None:
    before = (await operator(f"{PRIVATE}.ClusterVersions", "List", filter="this.spec.is_default"))[
        "items"
    ][0]
    version = BY_KIND["ClusterVersion"].fresh()
    version["spec"]["is_default"] = True
    made = await operator(f"{PRIVATE}.ClusterVersions", "Create", object=version)
    found = await operator(f"{PRIVATE}.ClusterVersions", "List", filter="this.spec.is_default")
    assert [item["id"] for item in found["items"]] == [made["id"]]
    before["spec"]["is_default"] = True
    await operator(
        f"{PRIVATE}.ClusterVersions", "Update", object=before, update_mask="spec.is_default"
    )
    found = await operator(f"{PRIVATE}.ClusterVersions", "List", filter="this.spec.is_default")
    assert [item["id"] for item in found["items"]] == [before["id"]]


async def test_racing_for_the_default_leaves_one(environment: ApiEnvironment) -> None:
    operator = As(environment, environment.grpc, "operator")
    service = f"{PRIVATE}.ClusterVersions"
    made = [
        await operator(service, "Create", object=BY_KIND["ClusterVersion"].fresh())
        for _ in range(5)
    ]
    await asyncio.gather(
        *(
            operator(
                service,
                "Update",
                object={"id": one["id"], "spec": {"is_default": True}},
                update_mask="spec.is_default",
            )
            for one in made
        ),
        return_exceptions=True,
    )
    found = await operator(service, "List", filter="this.spec.is_default")
    assert found["total"] == 1
    default = await operator(service, "List", filter='this.metadata.name == "v4-17-1"')
    await operator(
        service,
        "Update",
        object={"id": default["items"][0]["id"], "spec": {"is_default": True}},
        update_mask="spec.is_default",
    )


async def test_a_version_is_there_once(operator: As) -> None:
    version = BY_KIND["ClusterVersion"].fresh()
    await operator(f"{PRIVATE}.ClusterVersions", "Create", object=version)
    version["metadata"]["name"] += "-again"
    failed = await operator.refused(f"{PRIVATE}.ClusterVersions", "Create", object=version)
    assert failed.code == "ALREADY_EXISTS"


async def test_tenants_are_listed_enabled_versions_unless_they_ask(
    operator: As, member: As
) -> None:
    version = BY_KIND["ClusterVersion"].fresh()
    version["spec"] |= {"enabled": False, "state": "CLUSTER_VERSION_STATE_OBSOLETE"}
    made = await operator(f"{PRIVATE}.ClusterVersions", "Create", object=version)
    assert made["spec"]["deprecation"]["obsolescence_timestamp"]

    async def listed(text: str) -> set[str]:
        body = {"filter": text} if text else {}
        found = await member(f"{PUBLIC}.ClusterVersions", "List", **body)
        return {item["id"] for item in found.get("items", [])}

    number = made["spec"]["version"]
    assert made["id"] not in await listed("")
    assert made["id"] not in await listed(f'this.spec.version == "{number}"')
    assert made["id"] not in await listed("this.spec.state > 0")
    assert made["id"] in await listed("this.spec.state > 0 && this.spec.enabled == false")


async def test_21_a_hub_by_id_alone_has_a_name(operator: As) -> None:
    """As `create hub` sends it: an id, a spec, and no metadata."""
    id = f"hub_{operator._door.name}"
    made = await operator(
        f"{PRIVATE}.Hubs",
        "Create",
        object={"id": id, "spec": {"kubeconfig": samples.HUB_KUBECONFIG, "namespace": "orders"}},
    )
    assert made["id"] == id
    assert made["metadata"]["name"] == id.replace("_", "-")
    assert made["metadata"]["tenant"] == "system"
    assert made["spec"]["kubeconfig"] == "Kioq", "*** in base64"
    template = {"id": f"osac.templates.ocp_{operator._door.name}", "title": "x"}
    derived = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    assert derived["metadata"]["name"] == f"ocp-{operator._door.name}"


async def test_24_secrets_are_not_readable_in_the_database(
    member: As, environment: ApiEnvironment
) -> None:
    made = await member.cluster(pull_secret="clear-as-day")
    rows = await environment.ledger._connections.read(
        "looking", "select data from documents where id = $1", made["id"]
    )
    assert b"clear-as-day" not in rows[0][0]
    rows = await environment.ledger._connections.read(
        "looking", "select data from events where id = $1", made["id"]
    )
    assert b"clear-as-day" not in rows[0][0]


async def test_n13_credentials_of_an_unknown_cluster_are_not_found(member: As) -> None:
    for rpc in ("GetKubeconfigViaHttp", "GetPasswordViaHttp"):
        assert (await member.refused(CLUSTERS, rpc, id="nothing")).code == "NOT_FOUND"
        made = await member.cluster()
        failed = await member.refused(CLUSTERS, rpc, id=made["id"])
        assert failed.code == "NOT_FOUND"
        assert "PROGRESSING" in failed.message


async def test_signals_are_events_and_make_the_object_due(environment: ApiEnvironment) -> None:
    operator = As(environment, environment.grpc, "operator")
    made = await As(environment, environment.grpc, "member").cluster()
    await operator(f"{PRIVATE}.Clusters", "Signal", id=made["id"])
    await environment.ledger.events.publish()
    rows = await environment.ledger.events.list_history([("Cluster", made["id"])], 10)
    assert [row.type for row in rows] == [1, 4]
    assert (await operator(f"{PRIVATE}.Clusters", "Get", id=made["id"]))["metadata"].get(
        "version", 0
    ) == 0
