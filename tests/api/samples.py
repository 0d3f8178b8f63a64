"""Valid objects of every kind, and the catalogue the suites order from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment
from tests.support.kubeconfigs import inline, kubeconfig

_numbers = itertools.count(1)

STRING = "type.googleapis.com/google.protobuf.StringValue"
INT32 = "type.googleapis.com/google.protobuf.Int32Value"
HUB_KUBECONFIG = inline(kubeconfig())


async def stock(environment: ApiEnvironment) -> None:
    """Two tenants, host types, versions and templates, all made through the API."""
    token = environment.token("operator")

    async def create(service: str, body: Mapping[str, Any]) -> None:
        await environment.grpc.call(f"{PRIVATE}.{service}", "Create", {"object": body}, token=token)

    for tenant in ("acme", "globex"):
        await create("Tenants", {"metadata": {"name": tenant}})
    for name in ("small", "large"):
        await create("HostTypes", {"id": name, "metadata": {"name": name}, "title": name.title()})
    await create("ClusterVersions", version("4.17.1", is_default=True))
    await create("ClusterVersions", version("4.17.2"))
    await create("ClusterTemplates", template("ocp"))


def version(number: str, **spec: Any) -> dict[str, Any]:
    name = "v" + number.replace(".", "-")
    image = f"quay.example/release:{number}"
    return {"metadata": {"name": name}, "spec": {"version": number, "image": image, **spec}}


def template(id: str) -> dict[str, Any]:
    return {
        "id": id,
        "metadata": {"name": id.replace("_", "-")},
        "title": "OpenShift",
        "parameters": [
            {"name": "motd", "type": STRING, "default": {"@type": STRING, "value": "hello"}},
            {"name": "rounds", "type": INT32},
        ],
        "node_sets": {
            "compute": {"host_type": {"name": "small"}, "size": 3},
            "gpu": {"host_type": {"name": "large"}, "size": 1},
        },
        "spec_defaults": {"pull_secret": "from-the-template"},
    }


def cluster(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"template": {"name": "ocp"}, **spec}}


def _numbered(value: Any, number: str = "") -> Any:
    number = number or str(next(_numbers))
    match value:
        case str():
            return value.replace("#", number)
        case Mapping():
            return {key: _numbered(entry, number) for key, entry in value.items()}
        case list():
            return [_numbered(entry, number) for entry in value]
        case _:
            return value


@dataclass(frozen=True)
class Sample:
    """How to make one object of a kind, and one visible change to it."""

    kind: str
    service: str
    object: Mapping[str, Any]
    change: Mapping[str, Any]
    mask: str
    public_writes: bool = True  # whether an operator can create it in the public package

    def fresh(self, package: str = PRIVATE) -> dict[str, Any]:
        """An object that is like no other: its names carry a number."""
        made: dict[str, Any] = _numbered(self.object)
        if package == PUBLIC and self.kind == "ClusterTemplate":
            del made["spec_defaults"]
        return made

    def fresh_change(self) -> dict[str, Any]:
        changed: dict[str, Any] = _numbered(self.change)
        return changed

    def __str__(self) -> str:
        return self.kind


SAMPLES = (
    Sample(
        "Tenant",
        "Tenants",
        {"metadata": {"name": "initech-#"}, "spec": {"domains": ["initech-#.example"]}},
        {"spec": {"domains": ["other-#.example"]}},
        "spec.domains",
        public_writes=False,
    ),
    Sample(
        "Project",
        "Projects",
        {"metadata": {"name": "dev-#", "tenant": "acme"}, "spec": {"title": "Development"}},
        {"spec": {"title": "Research"}},
        "spec.title",
    ),
    Sample(
        "HostType",
        "HostTypes",
        {
            "metadata": {"name": "huge-#"},
            "title": "Huge",
            "interfaces": [{"name": "eth0", "role": "fabric"}],
        },
        {"title": "Very huge"},
        "title",
    ),
    Sample(
        "ClusterVersion",
        "ClusterVersions",
        version("4.18.#"),
        {"spec": {"enabled": False}},
        "spec.enabled",
        public_writes=False,
    ),
    Sample(
        "ClusterTemplate",
        "ClusterTemplates",
        template("ocp_two_#"),
        {"title": "Another"},
        "title",
    ),
    Sample(
        "Hub",
        "Hubs",
        {
            "metadata": {"name": "boston-#"},
            "spec": {"kubeconfig": HUB_KUBECONFIG, "namespace": "orders", "zone": "boston"},
        },
        {"spec": {"zone": "salem"}},
        "spec.zone",
        public_writes=False,
    ),
    Sample(
        "Cluster",
        "Clusters",
        {"metadata": {"name": "one-#", "tenant": "acme"}, "spec": {"template": {"name": "ocp"}}},
        {"spec": {"node_sets": {"compute": {"size": 5}}}},
        "spec.node_sets.compute.size",
    ),
)

PACKAGES = {
    **{(sample.kind, PRIVATE): sample for sample in SAMPLES},
    **{(sample.kind, PUBLIC): sample for sample in SAMPLES if sample.public_writes},
}
