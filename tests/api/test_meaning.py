"""What calls mean, and each defect of the contract's own service that we must not have (its number in the id)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from boatyard.model.generated.osac import Cluster, ClusterTemplate, Hub
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, Door, Failed, Yard

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLUSTERS = f"{PUBLIC}.Clusters"
BY_KIND = {sample.kind: sample for sample in samples.SAMPLES}


class As:
    """One role at one door."""

    def __init__(self, yard: Yard, door: Door, role: str, tenant: str = "acme") -> None:
        self._door = door
        self._token = yard.token(role, tenant)

    async def __call__(self, service: str, rpc: str, **body: Any) -> Any:
        return await self._door.call(service, rpc, body, token=self._token)

    async def cluster(self, **spec: Any) -> Any:
        made = BY_KIND["Cluster"].fresh()
        del made["metadata"]["tenant"]
        made["spec"] |= spec
        return await self(CLUSTERS, "Create", object=made)

    async def refused(self, service: str, rpc: str, **body: Any) -> Failed:
        with pytest.raises(Failed) as failed:
            await self(service, rpc, **body)
        return failed.value


@pytest.fixture
def member(yard: Yard, door: Door) -> As:
    return As(yard, door, "member")


@pytest.fixture
def operator(yard: Yard, door: Door) -> As:
    return As(yard, door, "operator")


# --- orders --------------------------------------------------------------------------------------


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


async def test_an_order_is_due_at_once_and_carries_its_finalizer(member: As, yard: Yard) -> None:
    made = await member.cluster()
    stored = await yard.ledger.get(Cluster, made["id"])
    assert stored is not None
    assert stored.metadata.finalizers == ("boatyard.io/order",)
    assert stored.spec.pull_secret == "from-the-template"
    leases = await yard.ledger.take(
        kinds=["Cluster"], limit=1000, lease_seconds=1, worker="w", now=yard.ledger.clock.now()
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


# --- updates -------------------------------------------------------------------------------------


async def test_1_status_cannot_be_written_by_tenants(member: As, yard: Yard) -> None:
    made = await member.cluster()
    written = {**made, "status": {"state": "CLUSTER_STATE_READY", "api_url": "http://evil"}}
    assert await member(CLUSTERS, "Update", object=written) == made
    for mask in ("status", "status.state"):
        failed = await member.refused(
            CLUSTERS, "Update", object={"id": made["id"]}, update_mask=mask
        )
        assert failed.code == "INVALID_ARGUMENT"
    stored = await yard.ledger.get(Cluster, made["id"])
    assert stored is not None
    assert stored.status.state.name == "PROGRESSING"


async def test_1_a_patch_of_status_changes_nothing(yard: Yard) -> None:
    member = As(yard, yard.rest, "member")
    made = await member.cluster()
    assert await member(CLUSTERS, "Update", object={"id": made["id"], "status": {}}) == made


async def test_5_a_mask_is_obeyed_for_every_kind(operator: As) -> None:
    for kind, package in (("HostType", PUBLIC), ("ClusterTemplate", PUBLIC)):
        sample = BY_KIND[kind]
        service = f"{package}.{sample.service}"
        made = await operator(service, "Create", object=sample.fresh(package))
        changed = await operator(
            service, "Update", object={"id": made["id"], "title": "New"}, update_mask="title"
        )
        assert changed["title"] == "New"
        assert changed["metadata"]["name"] == made["metadata"]["name"]


async def test_6_what_the_public_package_does_not_show_is_kept(operator: As, yard: Yard) -> None:
    made = await operator(
        f"{PRIVATE}.Clusters", "Create", object=_finalized(BY_KIND["Cluster"].fresh())
    )
    await operator(
        f"{PRIVATE}.Clusters",
        "Update",
        object={
            "id": made["id"],
            "status": {"hub": "boston-1"},
            "spec": {"node_sets": {"compute": {"fabric_interface": "eth7"}}},
        },
        update_mask=["status.hub", "spec.node_sets.compute.fabric_interface"],
    )
    public = await operator(CLUSTERS, "Get", id=made["id"])
    public["metadata"]["labels"] = {"a": "b"}
    await operator(CLUSTERS, "Update", object=public)
    stored = await yard.ledger.get(Cluster, made["id"])
    assert stored is not None
    assert stored.metadata.finalizers == ("boatyard.io/order", "example.com/mine")
    assert stored.status.hub == "boston-1"
    assert stored.spec.node_sets["compute"].fabric_interface == "eth7"
    assert stored.metadata.labels == {"a": "b"}


async def test_7_a_mask_into_a_map_keeps_the_entrys_other_fields(member: As) -> None:
    made = await member.cluster()
    changed = await member(
        CLUSTERS,
        "Update",
        object={"id": made["id"], "spec": {"node_sets": {"compute": {"size": 9}}}},
        update_mask="spec.node_sets.compute.size",
    )
    assert changed["spec"]["node_sets"]["compute"] == {
        "host_type": {"id": "small", "name": "small"},
        "size": 9,
    }
    assert changed["spec"]["node_sets"]["gpu"] == made["spec"]["node_sets"]["gpu"]
    assert changed["metadata"]["generation"] == "2"


async def test_scaling_as_the_contracts_command_line_does(member: As) -> None:
    """The whole object with the mask spec.node_sets."""
    made = await member.cluster()
    made["spec"]["node_sets"]["compute"]["size"] = 7
    changed = await member(CLUSTERS, "Update", object=made, update_mask="spec.node_sets")
    assert changed["spec"]["node_sets"]["compute"]["size"] == 7


async def test_n7_stars_keep_the_stored_secret_with_and_without_a_mask(
    member: As, yard: Yard
) -> None:
    made = await member.cluster(pull_secret="mine")
    assert made["spec"]["pull_secret"] == "***"
    made["metadata"]["labels"] = {"a": "1"}
    made = await member(CLUSTERS, "Update", object=made)
    await member(CLUSTERS, "Update", object=made, update_mask="spec.pull_secret")
    stored = await yard.ledger.get(Cluster, made["id"])
    assert stored is not None
    assert stored.spec.pull_secret == "mine"
    assert stored.metadata.version == 1
    made["spec"]["pull_secret"] = "another"
    await member(CLUSTERS, "Update", object=made, update_mask="spec.pull_secret")
    stored = await yard.ledger.get(Cluster, made["id"])
    assert stored is not None
    assert stored.spec.pull_secret == "another"


async def test_n18_what_is_hidden_from_the_package_survives_a_label(
    operator: As, yard: Yard
) -> None:
    template = await operator(
        f"{PRIVATE}.ClusterTemplates", "Create", object=BY_KIND["ClusterTemplate"].fresh()
    )
    shown = await operator(f"{PUBLIC}.ClusterTemplates", "Get", id=template["id"])
    assert "pull_secret" not in shown.get("spec_defaults", {})
    shown["metadata"]["labels"] = {"a": "b"}
    await operator(f"{PUBLIC}.ClusterTemplates", "Update", object=shown)
    stored = await yard.ledger.get(ClusterTemplate, template["id"])
    assert stored is not None
    assert stored.spec_defaults.pull_secret == "from-the-template"

    hub = await operator(f"{PRIVATE}.Hubs", "Create", object=BY_KIND["Hub"].fresh())
    hub["metadata"]["labels"] = {"a": "b"}
    await operator(f"{PRIVATE}.Hubs", "Update", object=hub)
    kept = await yard.ledger.get(Hub, hub["id"])
    assert kept is not None
    assert kept.spec.kubeconfig == b"secret"


async def test_n19_what_is_left_out_of_a_map_is_gone(member: As, yard: Yard) -> None:
    made = await yard.grpc.call(
        CLUSTERS,
        "Create",
        {"object": {**samples.cluster(f"n19-{member._door.name}")}},
        token=yard.token("member"),
    )
    made["metadata"]["labels"] = {"a": "1", "b": "2"}
    made = await member(CLUSTERS, "Update", object=made)
    del made["spec"]["node_sets"]["gpu"]
    made["metadata"]["labels"] = {"b": "2"}
    changed = await member(CLUSTERS, "Update", object=made)
    assert set(changed["spec"]["node_sets"]) == {"compute"}
    assert changed["metadata"]["labels"] == {"b": "2"}
    del made["spec"]["node_sets"]["compute"]
    made["spec"]["node_sets"] = {}
    failed = await member.refused(CLUSTERS, "Update", object=made, update_mask="spec.node_sets")
    assert "spec.node_sets" in failed.violations


async def test_n11_a_negative_size_is_refused_and_zero_is_not(member: As) -> None:
    made = await member.cluster()
    for size, code in ((-1, "INVALID_ARGUMENT"), (0, "")):
        made["spec"]["node_sets"]["compute"]["size"] = size
        if code:
            failed = await member.refused(CLUSTERS, "Update", object=made)
            assert "spec.node_sets.compute.size" in failed.violations
        else:
            await member(CLUSTERS, "Update", object=made, update_mask="spec.node_sets")


async def test_n3_server_owned_metadata_written_back_is_ignored(member: As) -> None:
    made = await member.cluster()
    written = {**made, "metadata": {**made["metadata"], "creator": "mallory"}}
    written["metadata"] |= {
        "creation_timestamp": "2001-01-01T00:00:00Z",
        "version": 77,
        "generation": "9",
        "deletion_timestamp": "2001-01-01T00:00:00Z",
    }
    assert await member(CLUSTERS, "Update", object=written) == made


@pytest.mark.parametrize(
    "path, value",
    [
        ("metadata.name", "other"),
        ("metadata.tenant", "globex"),
        ("metadata.project", "other"),
        ("spec.template", {"id": "other-template"}),
        ("spec.template_parameters", {"motd": {"@type": samples.STRING, "value": "new"}}),
        ("spec.network", {"pod_cidr": "10.0.0.0/16"}),
        ("spec.node_sets.compute.host_type", {"name": "large"}),
    ],
)
async def test_what_cannot_change(member: As, operator: As, path: str, value: Any) -> None:
    if path == "spec.template":
        template = BY_KIND["ClusterTemplate"].fresh()
        made = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
        value = {"id": made["id"]}
    made = await member.cluster()
    body: dict[str, Any] = {"id": made["id"]}
    inner = body
    *parents, last = path.split(".")
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last] = value
    for mask in (path, None):
        more = {"update_mask": mask} if mask else {}
        whole = body if mask else {**made, **_deep(made, body)}
        failed = await member.refused(CLUSTERS, "Update", object=whole, **more)
        assert failed.code == "INVALID_ARGUMENT"
        assert any(path.startswith(found) for found in failed.violations)


async def test_a_cluster_being_deleted_cannot_be_changed(member: As) -> None:
    made = await member.cluster()
    await member(CLUSTERS, "Delete", id=made["id"])
    body = {"id": made["id"], "spec": {"node_sets": {"compute": {"size": 9}}}}
    failed = await member.refused(
        CLUSTERS, "Update", object=body, update_mask="spec.node_sets.compute.size"
    )
    assert failed.code == "FAILED_PRECONDITION"


async def test_many_at_once_without_a_lock_all_count(yard: Yard) -> None:
    member = As(yard, yard.grpc, "member")
    made = await member.cluster()

    async def label(number: int) -> None:
        body = {"id": made["id"], "metadata": {"labels": {f"n{number}": "x"}}}
        await member(CLUSTERS, "Update", object=body, update_mask=f"metadata.labels.n{number}")

    await asyncio.gather(*(label(number) for number in range(6)))
    shown = await member(CLUSTERS, "Get", id=made["id"])
    assert len(shown["metadata"]["labels"]) == 6
    assert shown["metadata"]["version"] == 6


async def test_a_key_with_dots_is_masked_by_its_whole_name(member: As) -> None:
    made = await member.cluster()
    body = {"id": made["id"], "metadata": {"labels": {"app.example.com/part": "web"}}}
    changed = await member(
        CLUSTERS, "Update", object=body, update_mask="metadata.labels.app.example.com/part"
    )
    assert changed["metadata"]["labels"] == {"app.example.com/part": "web"}


async def test_a_patch_without_a_mask_changes_the_leaves_of_its_body(yard: Yard) -> None:
    member = As(yard, yard.rest, "member")
    made = await member.cluster()
    changed = await member(
        CLUSTERS, "Update", object={"id": made["id"], "metadata": {"description": "new"}}
    )
    assert changed["metadata"]["description"] == "new"
    assert changed["spec"] == made["spec"]
    assert await member(CLUSTERS, "Update", object={"id": made["id"]}) == changed


# --- deleting ------------------------------------------------------------------------------------


async def test_n8_what_is_in_use_cannot_be_deleted(operator: As, member: As) -> None:
    template = BY_KIND["ClusterTemplate"].fresh()
    host = BY_KIND["HostType"].fresh()
    host_type = await operator(f"{PRIVATE}.HostTypes", "Create", object=host)
    template["node_sets"] = {"a": {"host_type": {"id": host_type["id"]}, "size": 1}}
    made = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    version = await operator(
        f"{PRIVATE}.ClusterVersions", "Create", object=BY_KIND["ClusterVersion"].fresh()
    )
    await member.cluster(template={"id": made["id"]}, version={"id": version["id"]})
    for service, id in (
        ("HostTypes", host_type["id"]),
        ("ClusterTemplates", made["id"]),
        ("ClusterVersions", version["id"]),
        ("Tenants", "acme"),
    ):
        failed = await operator.refused(f"{PRIVATE}.{service}", "Delete", id=id)
        assert failed.code == "FAILED_PRECONDITION", service


async def test_n14_built_in_tenants_stay(operator: As) -> None:
    for name in ("shared", "system"):
        assert await operator(f"{PRIVATE}.Tenants", "Get", id=name)
        failed = await operator.refused(f"{PRIVATE}.Tenants", "Delete", id=name)
        assert failed.code == "FAILED_PRECONDITION"


async def test_n16_a_project_in_use_stays(yard: Yard, door: Door, operator: As) -> None:
    admin = As(yard, door, "admin")
    name = f"dev-{door.name}"
    project = await admin(f"{PUBLIC}.Projects", "Create", object={"metadata": {"name": name}})
    child = await admin(
        f"{PUBLIC}.Projects", "Create", object={"metadata": {"name": f"{name}.web"}}
    )
    assert child["metadata"]["project"] == name
    failed = await admin.refused(f"{PUBLIC}.Projects", "Delete", id=project["id"])
    assert failed.code == "FAILED_PRECONDITION"
    await admin(f"{PUBLIC}.Projects", "Delete", id=child["id"])
    made = await admin(
        CLUSTERS,
        "Create",
        object={
            "metadata": {"name": "one", "project": name},
            "spec": {"template": {"name": "ocp"}},
        },
    )
    failed = await admin.refused(f"{PUBLIC}.Projects", "Delete", id=project["id"])
    assert failed.code == "FAILED_PRECONDITION"
    await _finish(operator, made["id"])
    await admin(f"{PUBLIC}.Projects", "Delete", id=project["id"])
    gone = await admin.refused(
        CLUSTERS,
        "Create",
        object={
            "metadata": {"name": "two", "project": name},
            "spec": {"template": {"name": "ocp"}},
        },
    )
    assert "metadata.project" in gone.violations


async def test_n24_a_tenant_with_a_domain_can_be_deleted_and_the_domain_is_free(
    operator: As,
) -> None:
    one, two = (BY_KIND["Tenant"].fresh() for _ in range(2))
    two["spec"]["domains"] = one["spec"]["domains"]
    made = await operator(f"{PRIVATE}.Tenants", "Create", object=one)
    failed = await operator.refused(f"{PRIVATE}.Tenants", "Create", object=two)
    assert failed.code == "ALREADY_EXISTS"
    await operator(f"{PRIVATE}.Tenants", "Delete", id=made["id"])
    await operator(f"{PRIVATE}.Tenants", "Create", object=two)


async def test_the_last_finalizer_ends_a_deleted_object(operator: As, member: As) -> None:
    made = await member.cluster()
    await member(CLUSTERS, "Delete", id=made["id"])
    await _finish(operator, made["id"])
    assert (await member.refused(CLUSTERS, "Get", id=made["id"])).code == "NOT_FOUND"
    await member(
        CLUSTERS, "Create", object=samples.cluster(made["metadata"]["name"])
    )  # the name is free again


async def test_a_deleted_name_is_taken_until_the_object_is_gone(member: As) -> None:
    made = await member.cluster()
    await member(CLUSTERS, "Delete", id=made["id"])
    failed = await member.refused(
        CLUSTERS, "Create", object=samples.cluster(made["metadata"]["name"])
    )
    assert failed.code == "ALREADY_EXISTS"


async def test_of_a_create_and_a_delete_that_meet_one_gives_way(yard: Yard) -> None:
    """Nothing ever refers to what is gone."""
    operator, member = As(yard, yard.grpc, "operator"), As(yard, yard.grpc, "member")
    for _ in range(10):
        template = await operator(
            f"{PRIVATE}.ClusterTemplates", "Create", object=BY_KIND["ClusterTemplate"].fresh()
        )
        made, gone = await asyncio.gather(
            member.cluster(template={"id": template["id"]}),
            operator(f"{PRIVATE}.ClusterTemplates", "Delete", id=template["id"]),
            return_exceptions=True,
        )
        assert isinstance(made, Failed) != isinstance(gone, Failed)


# --- versions, hubs, names -----------------------------------------------------------------------


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


async def test_racing_for_the_default_leaves_one(yard: Yard) -> None:
    operator = As(yard, yard.grpc, "operator")
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
        object={"id": id, "spec": {"kubeconfig": "c2VjcmV0", "namespace": "orders"}},
    )
    assert made["id"] == id
    assert made["metadata"]["name"] == id.replace("_", "-")
    assert made["metadata"]["tenant"] == "system"
    assert made["spec"]["kubeconfig"] == "Kioq", "*** in base64"
    template = {"id": f"osac.templates.ocp_{operator._door.name}", "title": "x"}
    derived = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    assert derived["metadata"]["name"] == f"ocp-{operator._door.name}"


async def test_24_secrets_are_not_readable_in_the_database(member: As, yard: Yard) -> None:
    made = await member.cluster(pull_secret="clear-as-day")
    rows = await yard.ledger._connections.read(
        "looking", "select data from documents where id = $1", made["id"]
    )
    assert b"clear-as-day" not in rows[0][0]
    rows = await yard.ledger._connections.read(
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


async def test_signals_are_events_and_make_the_object_due(yard: Yard) -> None:
    operator = As(yard, yard.grpc, "operator")
    made = await As(yard, yard.grpc, "member").cluster()
    await operator(f"{PRIVATE}.Clusters", "Signal", id=made["id"])
    await yard.ledger.publish()
    rows = await yard.ledger.happenings([("Cluster", made["id"])], 10)
    assert [row.type for row in rows] == [1, 4]
    assert (await operator(f"{PRIVATE}.Clusters", "Get", id=made["id"]))["metadata"].get(
        "version", 0
    ) == 0


async def _finish(operator: As, id: str) -> None:
    """What the worker does at the end: the finalizer goes."""
    await operator(CLUSTERS, "Delete", id=id)
    await operator(
        f"{PRIVATE}.Clusters",
        "Update",
        object={"id": id, "metadata": {"finalizers": []}},
        update_mask="metadata.finalizers",
    )


def _finalized(body: dict[str, Any]) -> dict[str, Any]:
    body["metadata"]["finalizers"] = ["example.com/mine"]
    return body


def _deep(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _deep(old.get(key), value) for key, value in new.items()}}
