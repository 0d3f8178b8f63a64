"""Filters, masks, messages and bodies that are refused: in our words, and the process lives."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from boatyard.model import wire
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door, Failed, answered
from tests.api.roles import As

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLUSTERS = f"{PUBLIC}.Clusters"
STRING = samples.STRING
ANY_OF_NOTHING = {"@type": "type.googleapis.com/no.such.Type", "value": "x"}


def _cluster(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = samples.cluster("bad", **spec)
    made["metadata"] |= metadata or {}
    return made


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
async def test_filters_that_are_refused(environment: ApiEnvironment, door: Door, text: str) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "List", {"filter": text}, token=environment.token("viewer"))
    assert failed.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "order", ["nonsense", "metadata.name up", "spec.node_sets", "spec.pull_secret", "status.hub"]
)
async def test_orders_that_are_refused(environment: ApiEnvironment, door: Door, order: str) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "List", {"order": order}, token=environment.token("viewer"))
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
async def test_masks_that_are_refused(environment: ApiEnvironment, door: Door, mask: str) -> None:
    made = await _made(environment)
    body = {"object": {"id": made["id"], "status": {"state": 3}}, "update_mask": mask}
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "Update", body, token=environment.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    assert "update_mask" in failed.value.violations
    assert (
        await door.call(CLUSTERS, "Get", {"id": made["id"]}, token=environment.token("member"))
        == made
    )


@pytest.mark.parametrize("limit, offset", [(-1, 0), (-(2**31), 0)])
async def test_a_negative_limit_is_refused(
    environment: ApiEnvironment, door: Door, limit: int, offset: int
) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(
            CLUSTERS, "List", {"limit": limit, "offset": offset}, token=environment.token("viewer")
        )
    assert failed.value.violations == {"limit": f"{limit} is negative; give 0 or more"}


@pytest.mark.parametrize("id", ["a\0b", "x" * 1000])
async def test_ids_that_are_no_ids(environment: ApiEnvironment, id: str) -> None:
    for rpc in ("Get", "Delete"):
        with pytest.raises(Failed) as failed:
            await environment.grpc.call(
                CLUSTERS, rpc, {"id": id}, token=environment.token("member")
            )
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
async def test_messages_that_cannot_be_read(environment: ApiEnvironment, data: bytes) -> None:
    with pytest.raises(Failed) as failed:
        await environment.grpc.raw(CLUSTERS, "Create", data, token=environment.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    assert "ClustersCreateRequest" in failed.value.message


async def test_a_message_over_four_megabytes_is_refused_and_the_next_is_answered(
    environment: ApiEnvironment,
) -> None:
    body = {"object": _cluster({"annotations": {"a": "x" * 5_000_000}})}
    with pytest.raises(Failed) as failed:
        await environment.grpc.call(CLUSTERS, "Create", body, token=environment.token("member"))
    assert failed.value.code == "RESOURCE_EXHAUSTED"
    with pytest.raises(Failed) as failed:
        await environment.rest.call(CLUSTERS, "Create", body, token=environment.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    await environment.rest.call(CLUSTERS, "List", {}, token=environment.token("member"))


async def test_fields_of_a_later_contract_are_ignored_over_grpc_and_named_over_rest(
    environment: ApiEnvironment, door: Door
) -> None:
    if door.name == "grpc":
        request: Any = wire.message(f"{PUBLIC}.ClustersCreateRequest")()
        request.object.metadata.name = "from-the-future"
        request.object.spec.template.name = "ocp"
        unknown = b"\xfa\x7f\x03abc"  # field 2047, three bytes
        data = request.SerializeToString() + unknown
        await environment.grpc.raw(CLUSTERS, "Create", data, token=environment.token("member"))
        return
    for body, path in (
        ({"metadata": {"name": "x"}, "spce": {}}, "spce"),
        ({"metadata": {"name": "x", "naem": "y"}}, "metadata.naem"),
        ({"spec": {"node_sets": {"compute": {"sise": 1}}}}, "spec.node_sets"),
    ):
        with pytest.raises(Failed) as failed:
            await door.call(CLUSTERS, "Create", {"object": body}, token=environment.token("member"))
        assert failed.value.code == "INVALID_ARGUMENT"
        assert any(found.startswith(path) for found in failed.value.violations)


async def test_values_that_no_document_can_hold_are_named(environment: ApiEnvironment) -> None:
    """An enum number, a time and a type that this server does not know."""
    request: Any = wire.message(f"{PRIVATE}.ClustersCreateRequest")()
    request.object.metadata.name = "x"
    request.object.status.state = 77
    request.object.status.state_transition_time.seconds = 10**15
    request.object.spec.template_parameters["a"].type_url = "type.googleapis.com/no.such"
    with pytest.raises(Failed) as failed:
        await environment.grpc.raw(
            f"{PRIVATE}.Clusters",
            "Create",
            request.SerializeToString(),
            token=environment.token("operator"),
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
    pytest.param(
        json.dumps({"spec": {"template_parameters": {"a": {"@type": STRING}}}}).encode(),
        400,
        id="a type without a value",
    ),
]


@pytest.mark.parametrize("body, status", REST_BODIES)
async def test_bodies_that_are_refused(
    environment: ApiEnvironment, body: bytes, status: int
) -> None:
    response = await _post(environment, body)
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
        pytest.param({"origin": "http://[::1"}, 403, id="a broken origin"),
    ],
)
async def test_calls_a_browser_was_talked_into(
    environment: ApiEnvironment, headers: dict[str, str], status: int
) -> None:
    response = await _post(environment, json.dumps(samples.cluster("browser")).encode(), **headers)
    assert response.status_code == status


async def test_calls_from_our_own_pages_are_answered(environment: ApiEnvironment) -> None:
    base = str(environment.client.base_url).rstrip("/")
    body = json.dumps(samples.cluster("own-page")).encode()
    response = await _post(environment, body, origin=base)
    assert response.status_code == 200


async def test_paths_and_methods_that_are_not_there(environment: ApiEnvironment) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/api/fulfillment/v1/clusters/a/b/c", 404),
        ("PUT", "/api/fulfillment/v1/clusters", 405),
        ("GET", "/api/fulfillment/v1/virtual_networks", 401),
        ("GET", "/api/fulfillment/v1/clusters?limt=3", 401),
    ):
        headers = {"content-type": "application/json"}
        response = await environment.client.request(method, path, headers=headers)
        assert response.status_code == status, path
        assert set(response.json()) >= {"code", "message"}
    headers = {"authorization": f"Bearer {environment.token('viewer')}"}
    unknown = await environment.client.get("/api/fulfillment/v1/clusters?limt=3", headers=headers)
    assert unknown.status_code == 400
    unserved = await environment.client.get("/api/fulfillment/v1/virtual_networks", headers=headers)
    assert unserved.status_code == 501
    wrong = await environment.client.get("/api/fulfillment/v1/clusters?limit=many", headers=headers)
    assert wrong.status_code == 400


async def test_a_parameter_does_not_lead_away_from_the_path(environment: ApiEnvironment) -> None:
    member = As(environment, environment.rest, "member")
    meant, other = await member.cluster(), await member.cluster()
    headers = {"authorization": f"Bearer {environment.token('member')}"}
    path = f"/api/fulfillment/v1/clusters/{meant['id']}?id={other['id']}"
    assert (await environment.client.get(path, headers=headers)).json()["id"] == meant["id"]
    await environment.client.delete(path, headers=headers)
    kept = await member(CLUSTERS, "Get", id=other["id"])
    assert "deletion_timestamp" not in kept["metadata"]


async def test_an_empty_mask_in_the_address_does_not_mean_everything(
    environment: ApiEnvironment,
) -> None:
    member = As(environment, environment.rest, "member")
    made = await member.cluster()
    labels = {"metadata": {"labels": {"a": "b"}}}
    headers = {"authorization": f"Bearer {environment.token('member')}"}
    path = f"/api/fulfillment/v1/clusters/{made['id']}"
    for mask, body in (("", labels), (",", {"metadata": {"display_name": "Web"}})):
        answer = await environment.client.patch(
            f"{path}?update_mask={mask}", json=body, headers=headers
        )
        assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["labels"] == {"a": "b"}
    assert answer.json()["spec"] == made["spec"]


async def test_without_a_token_the_header_says_what_is_needed(environment: ApiEnvironment) -> None:
    response = await environment.client.get("/api/fulfillment/v1/clusters")
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == response.json()["message"]


async def test_health_and_the_description_need_no_token(environment: ApiEnvironment) -> None:
    assert (await environment.client.get("/healthz")).json() == {"status": "SERVING"}
    described = (await environment.client.get("/openapi.json")).json()
    assert "/api/fulfillment/v1/clusters" in described["paths"]
    capabilities = await environment.client.get("/api/fulfillment/v1/capabilities")
    assert capabilities.json() == {"authn": {}}


async def _post(environment: ApiEnvironment, body: bytes, **headers: str) -> httpx.Response:
    whole = {
        "authorization": f"Bearer {environment.token('member')}",
        "content-type": "application/json",
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    return await environment.client.post(
        "/api/fulfillment/v1/clusters", content=body, headers=whole
    )


async def _made(environment: ApiEnvironment) -> Any:
    sample = next(sample for sample in samples.SAMPLES if sample.kind == "Cluster").fresh()
    return await environment.grpc.call(
        CLUSTERS, "Create", {"object": sample}, token=environment.token("operator")
    )
