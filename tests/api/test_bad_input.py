"""Bad input: a clear error that names the field, nothing stored, and the process lives."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from boatyard.model import wire
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, Door, Failed, Yard, answered

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLUSTERS = f"{PUBLIC}.Clusters"
STRING = samples.STRING
ANY_OF_NOTHING = {"@type": "type.googleapis.com/no.such.Type", "value": "x"}


def _cluster(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = samples.cluster("bad", **spec)
    made["metadata"] |= metadata or {}
    return made


NOT_CREATED = [
    pytest.param(_cluster({"name": ""}), "metadata.name", id="no name"),
    pytest.param({"spec": {"template": {"name": "ocp"}}}, "metadata.name", id="no metadata"),
    pytest.param(_cluster({"name": "Upper"}), "metadata.name", id="capitals"),
    pytest.param(_cluster({"name": "-a"}), "metadata.name", id="a dash in front"),
    pytest.param(_cluster({"name": "a" * 64}), "metadata.name", id="64 characters"),
    pytest.param(_cluster({"name": "a" * 100_000}), "metadata.name", id="a huge name"),
    pytest.param(_cluster({"name": "a\0b"}), "metadata.name", id="a NUL in the name"),
    pytest.param(_cluster({"name": "a\n"}), "metadata.name", id="a line break"),
    pytest.param(_cluster({"name": "ünïcode"}), "metadata.name", id="not ASCII"),
    pytest.param(_cluster({"name": "../../etc"}), "metadata.name", id="a path"),
    pytest.param(_cluster({"labels": {"UP": "a"}}), "metadata.labels", id="a label's key"),
    pytest.param(_cluster({"labels": {"": "a"}}), "metadata.labels", id="an empty key"),
    pytest.param(_cluster({"labels": {"a/b/c": "a"}}), "metadata.labels", id="two slashes"),
    pytest.param(_cluster({"labels": {"a": "b c"}}), "metadata.labels['a']", id="a label's value"),
    pytest.param(
        _cluster({"labels": {f"k{n}": "v" for n in range(100)}}),
        "metadata.labels",
        id="many labels",
    ),
    pytest.param(_cluster({"annotations": {"é": "a"}}), "metadata.annotations", id="an annotation"),
    pytest.param(
        _cluster({"annotations": {"a": "x" * 300_000}}), "metadata.annotations", id="a long one"
    ),
    pytest.param(
        _cluster({"annotations": {"a": "b\0c"}}), "metadata.annotations.a", id="a NUL somewhere"
    ),
    pytest.param(_cluster({"display_name": "x" * 64}), "metadata.display_name", id="display name"),
    pytest.param(_cluster({"description": "x" * 257}), "metadata.description", id="description"),
    pytest.param(_cluster({"project": "nowhere"}), "metadata.project", id="an unknown project"),
    pytest.param(samples.cluster("bad", template={}), "spec.template", id="no template"),
    pytest.param(
        samples.cluster("bad", template={"name": "no"}), "spec.template", id="unknown name"
    ),
    pytest.param(samples.cluster("bad", template={"id": "no"}), "spec.template", id="unknown id"),
    pytest.param(
        samples.cluster("bad", template={"id": "ocp", "name": "other"}),
        "spec.template",
        id="id and name of two things",
    ),
    pytest.param(_cluster(version={"name": "9.9.9"}), "spec.version", id="unknown version"),
    pytest.param(_cluster(catalog_item={"name": "x"}), "spec.catalog_item", id="a catalogue item"),
    pytest.param(
        _cluster(pull_secret_secret={"name": "x"}), "spec.pull_secret_secret", id="a kept secret"
    ),
    pytest.param(
        _cluster(network_attachment={"subnet": {"name": "x"}}),
        "spec.network_attachment.subnet",
        id="a subnet",
    ),
    pytest.param(
        _cluster(auto_external_ip_attachment=True),
        "spec.auto_external_ip_attachment",
        id="an external address",
    ),
    pytest.param(
        _cluster(node_sets={"compute": {"size": -1}}),
        "spec.node_sets.compute.size",
        id="a negative size",
    ),
    pytest.param(
        _cluster(node_sets={"compute": {"size": 0}}), "spec.node_sets.compute.size", id="no size"
    ),
    pytest.param(
        _cluster(node_sets={"compute": {"size": 2_000_000_000}}),
        "spec.node_sets.compute.size",
        id="a huge size",
    ),
    pytest.param(
        _cluster(node_sets={"other": {"size": 1}}), "spec.node_sets.other", id="an unknown set"
    ),
    pytest.param(
        _cluster(node_sets={"compute": {"size": 1, "host_type": {"name": "no"}}}),
        "spec.node_sets.compute.host_type",
        id="an unknown host type inside a map",
    ),
    pytest.param(
        _cluster(node_sets={"compute": {"size": 1, "host_type": {"name": "large"}}}),
        "spec.node_sets.compute.host_type",
        id="another host type than the template's",
    ),
    pytest.param(
        _cluster(template_parameters={"no": {"@type": STRING, "value": "x"}}),
        "spec.template_parameters.no",
        id="an unknown parameter",
    ),
    pytest.param(
        _cluster(template_parameters={"motd": {"@type": samples.INT32, "value": 1}}),
        "spec.template_parameters.motd",
        id="a parameter of another type",
    ),
    pytest.param(_cluster(network={"pod_cidr": "ten"}), "spec.network.pod_cidr", id="not a range"),
    pytest.param(
        _cluster(network={"pod_cidr": "10.0.0.0/8", "service_cidr": "10.96.0.0/12"}),
        "spec.network",
        id="ranges that overlap",
    ),
    pytest.param(_cluster(pull_secret="***"), "spec.pull_secret", id="a hidden secret"),
    pytest.param(_cluster(ssh_public_key="x" * 20_000), "spec.ssh_public_key", id="a long key"),
]


@pytest.mark.parametrize("body, path", NOT_CREATED)
async def test_a_cluster_that_is_refused(
    yard: Yard, door: Door, body: dict[str, Any], path: str
) -> None:
    before = await _events(yard)
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "Create", {"object": body}, token=yard.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    assert path in failed.value.violations
    assert failed.value.violations[path]
    assert len(failed.value.message) < 5000
    assert "\0" not in failed.value.message
    assert await _events(yard) == before


async def test_everything_that_is_wrong_is_told_at_once(yard: Yard, door: Door) -> None:
    body = _cluster(
        {"name": "NO", "labels": {"NO": "x"}},
        node_sets={"compute": {"size": -1}, "no": {"size": 1}},
        template_parameters={"no": {"@type": STRING, "value": "x"}},
        network={"pod_cidr": "no"},
        version={"name": "no"},
    )
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "Create", {"object": body}, token=yard.token("member"))
    assert set(failed.value.violations) == {
        "metadata.name",
        "metadata.labels",
        "spec.node_sets.compute.size",
        "spec.node_sets.no",
        "spec.template_parameters.no",
        "spec.network.pod_cidr",
        "spec.version",
    }


OTHER_KINDS = [
    pytest.param("Tenants", {"metadata": {"name": "a.b"}}, "metadata.name", id="tenant name"),
    pytest.param(
        "Tenants", {"id": "x", "metadata": {"name": "y"}}, "id", id="tenant with another id"
    ),
    pytest.param(
        "Tenants",
        {"metadata": {"name": "y"}, "spec": {"domains": ["10.0.0.1"]}},
        "spec.domains[0]",
        id="a domain that is an address",
    ),
    pytest.param(
        "Tenants",
        {"metadata": {"name": "y"}, "spec": {"domains": ["a.example", "a.example"]}},
        "spec.domains[1]",
        id="a domain twice",
    ),
    pytest.param("Projects", {"metadata": {"name": "x"}}, "metadata.tenant", id="shared project"),
    pytest.param(
        "Projects",
        {"metadata": {"name": "no.web", "tenant": "acme"}},
        "metadata.project",
        id="a project without its parent",
    ),
    pytest.param(
        "Projects",
        {"metadata": {"name": "a.b.c.d.e", "tenant": "acme"}},
        "metadata.name",
        id="too deep",
    ),
    pytest.param(
        "HostTypes",
        {"metadata": {"name": "x"}, "interfaces": [{"name": "a"}, {"name": "a"}]},
        "interfaces[1].name",
        id="an interface twice",
    ),
    pytest.param("HostTypes", {"id": "a b", "metadata": {"name": "x"}}, "id", id="a bad id"),
    pytest.param(
        "ClusterVersions",
        {"metadata": {"name": "x"}, "spec": {"image": "x", "version": "four"}},
        "spec.version",
        id="not a version",
    ),
    pytest.param(
        "ClusterVersions",
        {"metadata": {"name": "x"}, "spec": {"version": "4.1.1"}},
        "spec.image",
        id="no image",
    ),
    pytest.param(
        "ClusterVersions",
        samples.version("4.1.1", is_default=True, enabled=False),
        "spec.is_default",
        id="a disabled default",
    ),
    pytest.param(
        "ClusterTemplates",
        {"metadata": {"name": "x"}, "node_sets": {"a": {"host_type": {"name": "no"}, "size": 1}}},
        "node_sets.a.host_type",
        id="an unknown host type",
    ),
    pytest.param(
        "ClusterTemplates",
        {"metadata": {"name": "x"}, "parameters": [{"name": "a", "type": "string"}]},
        "parameters[0].type",
        id="an unknown type",
    ),
    pytest.param(
        "ClusterTemplates",
        {
            "metadata": {"name": "x"},
            "parameters": [
                {"name": "a", "type": STRING, "default": {"@type": samples.INT32, "value": 1}}
            ],
        },
        "parameters[0].default",
        id="a default of another type",
    ),
    pytest.param("Hubs", {"metadata": {"name": "x"}}, "spec.kubeconfig", id="an empty hub"),
    pytest.param(
        "Hubs",
        {"metadata": {"name": "x"}, "spec": {"kubeconfig": "eA=="}},
        "spec.namespace",
        id="no namespace",
    ),
    pytest.param(
        "Hubs",
        {"metadata": {"name": "x"}, "spec": {"drivers": {"dns": "sim"}, "capacity": {"small": -1}}},
        "spec.capacity.small",
        id="a negative capacity",
    ),
]


@pytest.mark.parametrize("service, body, path", OTHER_KINDS)
async def test_other_kinds_that_are_refused(
    yard: Yard, door: Door, service: str, body: dict[str, Any], path: str
) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(
            f"{PRIVATE}.{service}", "Create", {"object": body}, token=yard.token("operator")
        )
    assert failed.value.code == "INVALID_ARGUMENT"
    assert path in failed.value.violations


FILTERS = [
    pytest.param("this.", id="an unfinished path"),
    pytest.param("this.nonsense == 1", id="an unknown field"),
    pytest.param("this.metadata.name", id="not a truth"),
    pytest.param("this.metadata.name == 1", id="two types"),
    pytest.param('this.metadata.name == "a\0b"', id="a NUL"),
    pytest.param("(" * 200 + "true" + ")" * 200, id="too deep"),
    pytest.param('this.metadata.name == "' + "x" * 10_000 + '"', id="too long"),
    pytest.param("this.metadata.name.matches('a+')", id="outside the subset"),
    pytest.param("this.status.hub == 'x'", id="a private field"),
    pytest.param("this.metadata.finalizers == ['x']", id="another private field"),
    pytest.param('this.spec.pull_secret.startsWith("a")', id="a secret"),
    pytest.param("has(this.spec.pull_secret)", id="whether there is a secret"),
    pytest.param("'; drop table documents; --", id="not CEL at all"),
    pytest.param("event.type == 1", id="the variable of watches"),
]


@pytest.mark.parametrize("text", FILTERS)
async def test_filters_that_are_refused(yard: Yard, door: Door, text: str) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "List", {"filter": text}, token=yard.token("viewer"))
    assert failed.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "order", ["nonsense", "metadata.name up", "spec.node_sets", "spec.pull_secret", "status.hub"]
)
async def test_orders_that_are_refused(yard: Yard, door: Door, order: str) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "List", {"order": order}, token=yard.token("viewer"))
    assert failed.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "mask",
    [
        "nonsense",
        "spec.nonsense",
        "spec.node_sets.compute.nonsense",
        "status.state",
        "status",
        "status.conditions.0",
        "spec..node_sets",
        "spec.",
        "metadata.creator",
        "metadata.version",
        "metadata.finalizers",
        "id",
        "*",
        "spec[0]",
        "x" * 1000,
    ],
)
async def test_masks_that_are_refused(yard: Yard, door: Door, mask: str) -> None:
    made = await _made(yard)
    body = {"object": {"id": made["id"], "status": {"state": 3}}, "update_mask": mask}
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "Update", body, token=yard.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    assert "update_mask" in failed.value.violations
    assert await door.call(CLUSTERS, "Get", {"id": made["id"]}, token=yard.token("member")) == made


@pytest.mark.parametrize("limit, offset", [(-1, 0), (-(2**31), 0)])
async def test_a_negative_limit_is_refused(yard: Yard, door: Door, limit: int, offset: int) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(
            CLUSTERS, "List", {"limit": limit, "offset": offset}, token=yard.token("viewer")
        )
    assert failed.value.violations == {"limit": f"{limit} is negative; give 0 or more"}


@pytest.mark.parametrize("id", ["a\0b", "x" * 1000])
async def test_ids_that_are_no_ids(yard: Yard, id: str) -> None:
    for rpc in ("Get", "Delete"):
        with pytest.raises(Failed) as failed:
            await yard.grpc.call(CLUSTERS, rpc, {"id": id}, token=yard.token("member"))
        assert failed.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff", id="rubbish"),
        pytest.param(b"\x0a\x7f\x01", id="cut short"),
        pytest.param(b"\x0a\x04\x12\x02\x22\xff", id="a string that is not UTF-8"),
        pytest.param(b"\x0b" * 1000, id="groups without an end"),
    ],
)
async def test_messages_that_cannot_be_read(yard: Yard, data: bytes) -> None:
    with pytest.raises(Failed) as failed:
        await yard.grpc.raw(CLUSTERS, "Create", data, token=yard.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    assert "ClustersCreateRequest" in failed.value.message


async def test_a_message_over_four_megabytes_is_refused_and_the_next_is_answered(
    yard: Yard,
) -> None:
    body = {"object": _cluster({"annotations": {"a": "x" * 5_000_000}})}
    with pytest.raises(Failed) as failed:
        await yard.grpc.call(CLUSTERS, "Create", body, token=yard.token("member"))
    assert failed.value.code == "RESOURCE_EXHAUSTED"
    with pytest.raises(Failed) as failed:
        await yard.rest.call(CLUSTERS, "Create", body, token=yard.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    await yard.rest.call(CLUSTERS, "List", {}, token=yard.token("member"))


async def test_fields_of_a_later_contract_are_ignored_over_grpc_and_named_over_rest(
    yard: Yard, door: Door
) -> None:
    if door.name == "grpc":
        request: Any = wire.message(f"{PUBLIC}.ClustersCreateRequest")()
        request.object.metadata.name = "from-the-future"
        request.object.spec.template.name = "ocp"
        unknown = b"\xfa\x7f\x03abc"  # field 2047, three bytes
        data = request.SerializeToString() + unknown
        await yard.grpc.raw(CLUSTERS, "Create", data, token=yard.token("member"))
        return
    for body, path in (
        ({"metadata": {"name": "x"}, "spce": {}}, "spce"),
        ({"metadata": {"name": "x", "naem": "y"}}, "metadata.naem"),
        ({"spec": {"node_sets": {"compute": {"sise": 1}}}}, "spec.node_sets"),
    ):
        with pytest.raises(Failed) as failed:
            await door.call(CLUSTERS, "Create", {"object": body}, token=yard.token("member"))
        assert failed.value.code == "INVALID_ARGUMENT"
        assert any(found.startswith(path) for found in failed.value.violations)


async def test_values_that_no_document_can_hold_are_named(yard: Yard) -> None:
    """An enum number, a time and a type that this server does not know."""
    request: Any = wire.message(f"{PRIVATE}.ClustersCreateRequest")()
    request.object.metadata.name = "x"
    request.object.status.state = 77
    request.object.status.state_transition_time.seconds = 10**15
    request.object.spec.template_parameters["a"].type_url = "type.googleapis.com/no.such"
    with pytest.raises(Failed) as failed:
        await yard.grpc.raw(
            f"{PRIVATE}.Clusters",
            "Create",
            request.SerializeToString(),
            token=yard.token("operator"),
        )
    assert failed.value.code == "INVALID_ARGUMENT"
    assert set(failed.value.violations) == {
        "status.state",
        "status.state_transition_time",
        "spec.template_parameters.a",
    }


REST_BODIES = [
    pytest.param(b"", 400, id="nothing"),
    pytest.param(b"{", 400, id="half an object"),
    pytest.param(b"[]", 400, id="a list"),
    pytest.param(b'"x"', 400, id="a text"),
    pytest.param(b"\xff\xfe", 400, id="not UTF-8"),
    pytest.param(b'{"metadata": "x"}', 400, id="a text for a message"),
    pytest.param(b'{"metadata": {"name": 5}}', 400, id="a number for a text"),
    pytest.param(b'{"metadata": {"labels": []}}', 400, id="a list for a map"),
    pytest.param(b'{"spec": {"node_sets": {"a": {"size": 1.5}}}}', 400, id="half a node"),
    pytest.param(b'{"spec": {"node_sets": {"a": {"size": 99999999999}}}}', 400, id="too many"),
    pytest.param(b'{"metadata": {"name": "\\ud800"}}', 400, id="half a character"),
    pytest.param(b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, id="very deep"),
    pytest.param(b'{"metadata": {"version": ' + b"9" * 5000 + b"}}", 400, id="a long number"),
    pytest.param(b'{"spec": {"template_parameters": {"a": {"value": 1}}}}', 400, id="no type"),
    pytest.param(
        json.dumps({"spec": {"template_parameters": {"a": ANY_OF_NOTHING}}}).encode(),
        400,
        id="a type that is not there",
    ),
]


@pytest.mark.parametrize("body, status", REST_BODIES)
async def test_bodies_that_are_refused(yard: Yard, body: bytes, status: int) -> None:
    response = await _post(yard, body)
    assert response.status_code == status
    with pytest.raises(Failed) as failed:
        answered(response)
    assert failed.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "headers, status",
    [
        pytest.param({"content-type": "text/plain"}, 415, id="a form that needs no preflight"),
        pytest.param({"content-type": "application/x-www-form-urlencoded"}, 415, id="a form"),
        pytest.param({"content-type": ""}, 415, id="no type"),
        pytest.param({"host": "evil.example"}, 421, id="a name that is not ours"),
        pytest.param({"host": "127.0.0.1.evil.example:80"}, 421, id="a name that begins like ours"),
        pytest.param({"host": "[::1"}, 421, id="a broken name"),
        pytest.param({"origin": "http://evil.example"}, 403, id="another origin"),
        pytest.param({"origin": "null"}, 403, id="no origin"),
    ],
)
async def test_calls_a_browser_was_talked_into(
    yard: Yard, headers: dict[str, str], status: int
) -> None:
    response = await _post(yard, json.dumps(samples.cluster("browser")).encode(), **headers)
    assert response.status_code == status


async def test_calls_from_our_own_pages_are_answered(yard: Yard) -> None:
    base = str(yard.client.base_url).rstrip("/")
    body = json.dumps(samples.cluster("own-page")).encode()
    response = await _post(yard, body, origin=base)
    assert response.status_code == 200


async def test_paths_and_methods_that_are_not_there(yard: Yard) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/api/fulfillment/v1/clusters/a/b/c", 404),
        ("PUT", "/api/fulfillment/v1/clusters", 405),
        ("GET", "/api/fulfillment/v1/virtual_networks", 401),
        ("GET", "/api/fulfillment/v1/clusters?limt=3", 401),
    ):
        headers = {"content-type": "application/json"}
        response = await yard.client.request(method, path, headers=headers)
        assert response.status_code == status, path
        assert set(response.json()) >= {"code", "message"}
    headers = {"authorization": f"Bearer {yard.token('viewer')}"}
    unknown = await yard.client.get("/api/fulfillment/v1/clusters?limt=3", headers=headers)
    assert unknown.status_code == 400
    unserved = await yard.client.get("/api/fulfillment/v1/virtual_networks", headers=headers)
    assert unserved.status_code == 501
    wrong = await yard.client.get("/api/fulfillment/v1/clusters?limit=many", headers=headers)
    assert wrong.status_code == 400


async def test_without_a_token_the_header_says_what_is_needed(yard: Yard) -> None:
    response = await yard.client.get("/api/fulfillment/v1/clusters")
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == response.json()["message"]


async def test_health_and_the_description_need_no_token(yard: Yard) -> None:
    assert (await yard.client.get("/healthz")).json() == {"status": "SERVING"}
    described = (await yard.client.get("/openapi.json")).json()
    assert "/api/fulfillment/v1/clusters" in described["paths"]
    capabilities = await yard.client.get("/api/fulfillment/v1/capabilities")
    assert capabilities.json() == {"authn": {}}


async def _post(yard: Yard, body: bytes, **headers: str) -> httpx.Response:
    whole = {
        "authorization": f"Bearer {yard.token('member')}",
        "content-type": "application/json",
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    return await yard.client.post("/api/fulfillment/v1/clusters", content=body, headers=whole)


async def _made(yard: Yard) -> Any:
    sample = next(sample for sample in samples.SAMPLES if sample.kind == "Cluster").fresh()
    return await yard.grpc.call(
        CLUSTERS, "Create", {"object": sample}, token=yard.token("operator")
    )


async def _events(yard: Yard) -> int:
    await yard.ledger.publish()
    return await yard.ledger.last_seq()
