"""`boatyard.service.apply`: what a role puts into its own cluster, on a real API server, and without one."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from boatyard.automation.port import RunSpec
from boatyard.kube.kinds import CONFIG_MAPS, NAMESPACES
from boatyard.model.errors import NotFound, Refused
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kube_hub.api_server import admin
from tests.support.role_runs import RoleEnvironment, again, ended, facts, whole_story

KEY = "order-1/post_install"
HOSTILE = (
    "{{ lookup('pipe', 'id') }} {% raw %} !unsafe $(id) \"'\\ # \t\r\n\n  Grüße 世界 😀 \u2028"
    "\x7f\x85\ufeff\uffff\\ud83d\\\\ude00\n"
)
SECRET = "s3cret-of-the-tenant"
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as made:
        yield made


def apply(*manifests: Any, name: str = "apply", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "boatyard.service.apply": {"manifests": list(manifests), **more},
        "register": "said",
    }


def report() -> dict[str, Any]:
    return facts(changed="{{ said.changed }}", said="{{ said.msg }}")


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(place: str, **data: Any) -> dict[str, Any]:
    metadata = {"name": "settings", "namespace": place}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def quota(place: str) -> dict[str, Any]:
    metadata = {"name": "all", "namespace": place}
    spec = {"hard": {"pods": "10"}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def inside(plane: ControlPlane, wanted: RunSpec, **changes: Any) -> RunSpec:
    """With the kubeconfig of the cluster."""
    config = json.dumps(plane.kubeconfig())
    return again(wanted, files={"kubeconfig": config}, order={"simulated": False}, **changes)


async def settings(plane: ControlPlane, place: str) -> dict[str, Any]:
    client = admin(plane)
    try:
        return await client.get(CONFIG_MAPS, "settings", namespace=place)
    finally:
        await client.close()


# --- a real API server ----------------------------------------------------------------------


@pytest.mark.parametrize("warm", [False, True], ids=["plain", "warm"])
async def test_what_a_tenant_wrote_is_in_the_cluster_byte_by_byte(
    role_environment: RoleEnvironment, plane: ControlPlane, warm: bool
) -> None:
    place = f"bytes-{warm}".lower()
    data = "{{ {'greeting': greeting, 'all': boatyard_parameters | to_json} }}"
    tasks = [
        apply(namespace(place), quota(place), {**config_map(place), "data": data}),
        report(),
    ]
    wanted = inside(
        plane, role_environment.role("writer", post_install=tasks), values={"greeting": HOSTILE}
    )
    driver = role_environment.warm_driver() if warm else role_environment.driver()

    first = await ended(driver, KEY, wanted)
    second = await ended(driver, KEY, again(wanted, attempt=2))

    found = await settings(plane, place)
    assert found["data"]["greeting"] == HOSTILE
    assert json.loads(found["data"]["all"]) == {"greeting": HOSTILE}
    assert first.facts["changed"] == "true"
    names = (f"Namespace {place}", f"ResourceQuota {place}/all", f"ConfigMap {place}/settings")
    assert first.facts["said"] == ", ".join(f"{name} created" for name in names)
    assert second.facts["changed"] == "false"
    assert second.facts["said"] == ", ".join(f"{name} unchanged" for name in names)


async def test_a_change_is_seen_and_taking_away_is_content_with_nothing(
    role_environment: RoleEnvironment, plane: ControlPlane
) -> None:
    tasks = [
        apply(namespace("going"), config_map("going", a="1")),
        apply(config_map("going", a="2"), name="change"),
        {**facts(change="{{ said.msg }} {{ said.changed }}"), "name": "report change"},
        apply(config_map("going"), CRD, boat("going"), name="away", state="absent"),
        {**facts(away="{{ said.msg }} {{ said.changed }}"), "name": "report away"},
        apply(config_map("going"), boat("going"), name="away again", state="absent"),
        {**facts(again="{{ said.msg }} {{ said.changed }}"), "name": "report again"},
    ]
    wanted = inside(plane, role_environment.role("mover", post_install=tasks))

    done = await ended(role_environment.driver(), KEY, wanted)

    assert done.facts["change"] == "ConfigMap going/settings changed True"
    crd = f"CustomResourceDefinition {CRD['metadata']['name']}"
    assert done.facts["away"] == (
        f"Boat ada not there, {crd} not there, ConfigMap going/settings deleted True"
    )
    assert done.facts["again"] == "Boat ada not there, ConfigMap going/settings not there False"
    with pytest.raises(NotFound):
        await settings(plane, "going")


async def test_a_new_kind_can_be_used_at_once(
    role_environment: RoleEnvironment, plane: ControlPlane
) -> None:
    tasks = [apply(namespace("sea"), CRD, boat("sea")), report()]
    wanted = inside(plane, role_environment.role("definer", post_install=tasks))

    done = await ended(role_environment.driver(), KEY, wanted)

    assert done.facts["said"].endswith("Boat sea/ada created")


def boat(place: str) -> dict[str, Any]:
    metadata = {"name": "ada", "namespace": place}
    return {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": metadata, "spec": {}}


@pytest.mark.parametrize(
    "manifest, words",
    [
        pytest.param(
            config_map("default", a=5), "ConfigMap settings: failed to create typed", id="typed"
        ),
        pytest.param({**config_map("default"), "dat": {}}, "dat", id="a word it does not know"),
        pytest.param(namespace("No Name"), "RFC 1123", id="a name it does not take"),
        pytest.param(config_map("nowhere"), 'namespaces "nowhere" not found', id="no namespace"),
        pytest.param(boat("default") | {"kind": "Ship"}, "no kind Ship in example.com/v1", id="kind"),
        pytest.param(
            {**namespace("here"), "metadata": {"name": "here", "namespace": "there"}},
            "metadata.namespace: this kind has none",
            id="a namespace for what has none",
        ),
    ],
)  # fmt: skip
async def test_what_is_refused_is_told_in_the_servers_words(
    role_environment: RoleEnvironment, plane: ControlPlane, manifest: dict[str, Any], words: str
) -> None:
    wanted = inside(plane, role_environment.role("wrong", post_install=[apply(manifest)]))

    with pytest.raises(Refused) as refused:
        await ended(role_environment.driver(), KEY, wanted)

    assert words in str(refused.value)


async def test_what_a_secret_holds_is_told_nowhere(
    role_environment: RoleEnvironment, plane: ControlPlane
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}}
    encoded = base64.b64encode(SECRET.encode()).decode()
    tasks = [
        apply({**secret, "data": {"a": encoded}}),
        {"name": "show", "ansible.builtin.debug": {"var": "said"}},
        apply({**secret, "stringData": {"a": [SECRET, {"b": encoded}]}}, name="wrong"),
    ]
    driver = role_environment.driver()

    with pytest.raises(Refused, match="Secret mine") as refused:
        await ended(
            driver, KEY, inside(plane, role_environment.role("careless", post_install=tasks))
        )

    story = [f"{one.task} {one.text}" for one in await whole_story(driver, KEY)]
    assert any("mine" in line for line in story)
    for text in (str(refused.value), *story):
        assert SECRET not in text
        assert encoded not in text


async def test_a_server_that_comes_late_is_waited_for(
    role_environment: RoleEnvironment, plane: ControlPlane
) -> None:
    tasks = [apply(namespace("late")), report()]
    wanted = inside(plane, role_environment.role("patient", post_install=tasks))
    driver = role_environment.driver()

    plane.stop("kube-apiserver")
    try:
        running = asyncio.create_task(ended(driver, KEY, wanted))
        await asyncio.sleep(2)
        assert not running.done()
    finally:
        plane.restart("kube-apiserver")
        plane.until_ready()
    done = await running

    assert done.facts["said"] == "Namespace late created"


async def test_a_stranger_is_not_spoken_to(
    role_environment: RoleEnvironment, plane: ControlPlane
) -> None:
    config = plane.kubeconfig()
    other = ControlPlane(plane.programs)
    config["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(
        other.ca.pem
    ).decode()
    other.close()
    wanted = role_environment.role("trusting", post_install=[apply(namespace("stolen"))])

    with pytest.raises(Refused, match="not who it should be"):
        await ended(
            role_environment.driver(),
            KEY,
            again(wanted, files={"kubeconfig": json.dumps(config)}, order={"simulated": False}),
        )

    client = admin(plane)
    with pytest.raises(NotFound):
        await client.get(NAMESPACES, "stolen")
    await client.close()


# --- without one ----------------------------------------------------------------------------


async def test_a_simulated_cluster_takes_what_looks_like_a_manifest(
    role_environment: RoleEnvironment,
) -> None:
    tasks = [apply(namespace("a"), config_map("a")), facts(said="{{ said.simulated }} {{ said.changed }}")]  # fmt: skip
    wanted = again(
        role_environment.role("rehearsal", post_install=tasks),
        files={"kubeconfig": "made up"},
        order={"simulated": True},
    )

    done = await ended(role_environment.driver(), KEY, wanted)

    assert done.facts["said"] == "True False"


@pytest.mark.parametrize("simulated", [True, False], ids=["simulated", "no cluster"])
async def test_all_that_is_wrong_is_told_before_anything_is_done(
    role_environment: RoleEnvironment, simulated: bool
) -> None:
    tasks = [
        {
            "name": "wrong",
            "boatyard.service.apply": {
                "manifests": [
                    "kind: Text",
                    {"kind": "ConfigMap", "metadata": {"name": "../../secrets/x"}},
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}},
                    {"apiVersion": "v1", "kind": "PodList", "items": []},
                ],
                "state": "gone",
                "wait": True,
            },
        }
    ]
    files = {"kubeconfig": "made up"} if simulated else {}
    wanted = again(
        role_environment.role("mistaken", post_install=tasks),
        files=files,
        order={"simulated": simulated},
    )

    with pytest.raises(Refused) as refused:
        await ended(role_environment.driver(), KEY, wanted)

    for words in (
        "wait: is not known",
        "manifests[0]: is no mapping",
        "manifests[1].apiVersion: is missing",
        "manifests[1].metadata.name: is no name",
        "manifests[2].metadata.name: is missing",
        "manifests[3].kind: is a list",
        "state: is present or absent",
    ):
        assert words in str(refused.value)


async def test_without_a_cluster_nothing_can_be_put_and_nothing_need_be_taken(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "early",
        pre_install=[apply(namespace("a"))],
        delete=[apply(namespace("a"), state="absent"), report()],
    )
    driver = role_environment.driver()

    with pytest.raises(Refused, match="there is no cluster to write to"):
        await ended(driver, KEY, wanted)
    done = await ended(driver, "order-1/farewell", again(wanted, action="delete"))

    assert done.facts["changed"] == "false"
