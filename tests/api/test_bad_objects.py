"""Objects that are refused: a clear error that names the field, nothing stored, and the process lives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door, Failed

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
    environment: ApiEnvironment, door: Door, body: dict[str, Any], path: str
) -> None:
    before = await _events(environment)
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "Create", {"object": body}, token=environment.token("member"))
    assert failed.value.code == "INVALID_ARGUMENT"
    assert path in failed.value.violations
    assert failed.value.violations[path]
    assert len(failed.value.message) < 5000
    assert "\0" not in failed.value.message
    assert await _events(environment) == before


async def test_everything_that_is_wrong_is_told_at_once(
    environment: ApiEnvironment, door: Door
) -> None:
    body = _cluster(
        {"name": "NO", "labels": {"NO": "x"}},
        node_sets={"compute": {"size": -1}, "no": {"size": 1}},
        template_parameters={"no": {"@type": STRING, "value": "x"}},
        network={"pod_cidr": "no"},
        version={"name": "no"},
    )
    with pytest.raises(Failed) as failed:
        await door.call(CLUSTERS, "Create", {"object": body}, token=environment.token("member"))
    assert set(failed.value.violations) == {
        "metadata.name",
        "metadata.labels",
        "spec.node_sets.compute.size",
        "spec.node_sets.no",
        "spec.template_parameters.no",
        "spec.network.pod_cidr",
        "spec.version",
    }


async def test_an_answer_to_much_that_is_wrong_still_arrives(
    environment: ApiEnvironment, door: Door
) -> None:
    """Errors travel in headers, which have little room."""
    sets = {"é\N{SNOWMAN}" * 3000 + str(number): {"size": -1} for number in range(60)}
    with pytest.raises(Failed) as failed:
        await door.call(
            CLUSTERS,
            "Create",
            {"object": _cluster(node_sets=sets)},
            token=environment.token("member"),
        )
    assert failed.value.code == "INVALID_ARGUMENT"
    assert failed.value.violations
    assert len(failed.value.message) <= 1001


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
        "spec.kubeconfig",
        id="a kubeconfig that is none",
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
    environment: ApiEnvironment, door: Door, service: str, body: dict[str, Any], path: str
) -> None:
    with pytest.raises(Failed) as failed:
        await door.call(
            f"{PRIVATE}.{service}", "Create", {"object": body}, token=environment.token("operator")
        )
    assert failed.value.code == "INVALID_ARGUMENT"
    assert path in failed.value.violations


async def _events(environment: ApiEnvironment) -> int:
    await environment.ledger.events.publish()
    return await environment.ledger.events.last_seq()
