"""The verbs of the Kubernetes client against a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.errors import Expired
from boatyard.kube.kinds import (
    CONFIG_MAPS,
    CRDS,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    KubeKind,
)
from boatyard.model.errors import Conflict, Exists, NotFound, Refused, Unavailable
from tests.support.control_plane import ControlPlane

THINGS = KubeKind("test.example", "v1", "things", "Thing", True)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "none"}]
    about = {"name": name, "labels": labels or {}}
    return {"metadata": about, "spec": {"containers": containers, **spec}}


async def test_an_object_is_made_read_replaced_patched_and_deleted(
    client: KubeClient, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
    assert made["metadata"]["uid"]

    made["data"] = {"x": "2"}
    replaced = await client.replace(CONFIG_MAPS, made)
    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAPS, made)  # that version is no longer the present one

    patch = {"data": {"x": None, "y": "3"}}
    assert (await client.merge_patch(CONFIG_MAPS, "a", patch, namespace))["data"] == {"y": "3"}
    assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"y": "3"}

    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, uid="another")
    assert await client.delete(CONFIG_MAPS, "a", namespace, uid=replaced["metadata"]["uid"])
    assert not await client.delete(CONFIG_MAPS, "a", namespace)
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "a", namespace)


async def test_errors_have_their_kinds(client: KubeClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(Exists):
        await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(Refused) as refused:
        await client.create(CONFIG_MAPS, config_map("No_Name"), namespace)
    assert [violation.path for violation in refused.value.violations] == ["metadata.name"]
    with pytest.raises(Refused):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "b"}, "data": 7}, namespace)
    with pytest.raises(NotFound):
        await client.list(THINGS, namespace)
    with pytest.raises(NotFound):
        await client.merge_patch(CONFIG_MAPS, "none", {}, namespace)


async def test_a_secret_that_is_refused_is_not_quoted(client: KubeClient, namespace: str) -> None:
    for data in ({"password": "hunter2!"}, {"bad key": "aHVudGVyMg=="}, "hunter2"):
        with pytest.raises(Refused) as refused:
            await client.create(SECRETS, {"metadata": {"name": "s"}, "data": data}, namespace)
        assert "hunter2" not in f"{refused.value!r} {refused.value.violations}"


async def test_a_list_comes_in_pages_and_is_whole(client: KubeClient, namespace: str) -> None:
    for number in range(25):
        body = config_map(f"c{number:02}")
        body["metadata"]["labels"] = {"even": str(number % 2 == 0).lower()}
        await client.create(CONFIG_MAPS, body, namespace)

    listed = await client.list(CONFIG_MAPS, namespace, page=7)
    even = await client.list(CONFIG_MAPS, namespace, labels="even=true", page=4)
    one = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=c03")

    assert [item["metadata"]["name"] for item in listed.items] == [f"c{n:02}" for n in range(25)]
    assert int(listed.resource_version) > 0
    assert len(even.items) == 13
    assert len(one.items) == 1


async def test_a_page_that_has_expired_is_told(
    client: KubeClient, namespace: str, plane: ControlPlane
) -> None:
    for number in range(4):
        await client.create(SECRETS, {"metadata": {"name": f"s{number}"}}, namespace)
    path = SECRETS.path(namespace)
    first = await client.call("GET", path, query={"limit": "2"})
    last = await client.create(SECRETS, {"metadata": {"name": "new"}}, namespace)
    plane.compact(last["metadata"]["resourceVersion"])
    # The server has pages in its memory too; a new one has only what etcd still knows.
    plane.restart("kube-apiserver")
    plane.until_ready()

    more = {"limit": "2", "continue": first["metadata"]["continue"]}
    with pytest.raises(Expired):
        await client.call("GET", path, query=more)
    assert len((await client.list(SECRETS, namespace, page=2)).items) == 5


async def test_what_is_applied_arrives_letter_by_letter(client: KubeClient, namespace: str) -> None:
    odd = "".join(map(chr, [*range(0x20, 0x100), 0x2028, 0x2029, 0xFEFF, 0xFFFD, 0x1F980]))
    text = f"{odd}\n\t{{{{ x }}}} 'é' # : - ? & * ! | > % @ `"
    found = await client.apply(CONFIG_MAPS, "odd", {"data": {"text": text}}, namespace)
    assert found["data"]["text"] == text
    assert (await client.get(CONFIG_MAPS, "odd", namespace))["data"]["text"] == text


async def test_server_side_apply_has_owners(
    client: KubeClient, namespace: str, plane: ControlPlane
) -> None:
    other = KubeClient(read_kubeconfig(plane.kubeconfig()), manager="other")
    mine = {"data": {"x": "mine", "y": "mine"}}
    await client.apply(CONFIG_MAPS, "a", mine, namespace)

    with pytest.raises(Conflict):
        await other.apply(CONFIG_MAPS, "a", {"data": {"x": "theirs"}}, namespace, force=False)
    taken = await other.apply(CONFIG_MAPS, "a", {"data": {"x": "theirs"}}, namespace)
    assert taken["data"] == {"x": "theirs", "y": "mine"}

    # What we said and say no longer goes; what another has taken stays.
    left = await client.apply(CONFIG_MAPS, "a", {"data": {}}, namespace)
    assert left["data"] == {"x": "theirs"}
    await other.close()


async def test_status_is_written_apart(client: KubeClient, namespace: str) -> None:
    await established(client)
    await client.create(THINGS, {"metadata": {"name": "t"}, "spec": {"n": 1}}, namespace)

    await client.apply(THINGS, "t", {"status": {"n": 1}}, namespace, subresource="status")
    await client.merge_patch(THINGS, "t", {"status": {"m": 2}}, namespace, subresource="status")
    await client.merge_patch(THINGS, "t", {"spec": {"n": 2}, "status": {"n": 9}}, namespace)

    seen = await client.get(THINGS, "t", namespace)
    assert seen["spec"] == {"n": 2}
    assert seen["status"] == {"n": 1, "m": 2}
    assert seen["metadata"]["generation"] == 2
    with pytest.raises(NotFound):
        await client.apply(THINGS, "none", {"status": {}}, namespace, subresource="status")


async def test_a_budget_keeps_a_pod_from_leaving(client: KubeClient, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(PODS, pod(name, {"app": name}), namespace)
        ready = [{"type": "Ready", "status": "True"}]
        status = {"status": {"phase": "Running", "conditions": ready}}
        await client.merge_patch(PODS, name, status, namespace, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await client.create(DISRUPTION_BUDGETS, {"metadata": {"name": "a"}, "spec": spec}, namespace)

    assert await client.evict("a", namespace, grace=0) is False
    assert await client.evict("b", namespace, grace=0) is True
    assert await client.evict("b", namespace, grace=0) is True  # it has left
    assert [item["metadata"]["name"] for item in (await client.list(PODS, namespace)).items] == [
        "a"
    ]


async def test_plain_text_is_read(client: KubeClient) -> None:
    assert await client.get_text("/readyz") == "ok"
    assert "etcd ok" in await client.get_text("/readyz", query={"verbose": ""})
    assert (await client.call("GET", "/version"))["major"] == "1"


async def test_impersonation_is_sent(client: KubeClient, plane: ControlPlane) -> None:
    kubeconfig = plane.kubeconfig()
    kubeconfig["users"][0]["user"] |= {"as": "nobody", "as-groups": ["g1", "g2"]}
    nobody = KubeClient(read_kubeconfig(kubeconfig))
    with pytest.raises(Refused, match="nobody"):
        await nobody.list(NODES)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    seen = await nobody.call("POST", path, body=review)
    assert seen["status"]["userInfo"]["username"] == "nobody"
    assert {"g1", "g2"} <= set(seen["status"]["userInfo"]["groups"])
    await nobody.close()


async def test_a_server_that_stops_and_starts_is_unavailable_and_then_there(
    client: KubeClient, plane: ControlPlane
) -> None:
    await client.get(NAMESPACES, "default")
    with plane.without("kube-apiserver"), pytest.raises(Unavailable):
        await client.get(NAMESPACES, "default")
    await client.get(NAMESPACES, "default")


async def established(client: KubeClient) -> None:
    schema = {
        "type": "object",
        "properties": {
            part: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            for part in ("spec", "status")
        },
    }
    served = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    spec = {
        "group": THINGS.group,
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
    }
    await client.apply(CRDS, "things.test.example", {"spec": spec})
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(THINGS)
                return
            except NotFound:
                await asyncio.sleep(0.05)
