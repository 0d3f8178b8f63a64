"""Rules that admit clusters and what they are ordered from, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from boatyard.model.caller import Caller, CallerRole
from boatyard.model.errors import Exists, Precondition, Refused
from boatyard.model.generated.osac import (
    Cluster,
    ClusterCondition,
    ClusterConditionType,
    ClusterNetwork,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplate,
    ClusterTemplateNodeSet,
    ClusterTemplateParameterDefinition,
    ClusterTemplateReference,
    ClusterTemplateSpecDefaults,
    ClusterVersion,
    ClusterVersionReference,
    ClusterVersionSpec,
    ClusterVersionState,
    HostTypeReference,
    Metadata,
    Project,
    Tenant,
    TenantSpec,
)
from boatyard.resources import metadata as metadata_rules
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.cluster_versions.rules import ClusterVersionRules
from boatyard.resources.clusters.rules import ClusterRules
from boatyard.resources.projects.rules import ProjectRules
from boatyard.resources.tenants.rules import TenantRules

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN = Caller("ann", "acme", CallerRole.MEMBER)
STRING = "type.googleapis.com/google.protobuf.StringValue"
SMALL = HostTypeReference(id="small", name="small")


def _version(id: str, *, tenant: str = "shared", **spec: Any) -> ClusterVersion:
    return ClusterVersion(
        id=id,
        metadata=Metadata(name=id, tenant=tenant),
        spec=ClusterVersionSpec(version="4.17.1", image="x", **spec),
    )


TEMPLATE = ClusterTemplate(
    id="ocp",
    metadata=Metadata(name="ocp", tenant="shared"),
    parameters=(
        ClusterTemplateParameterDefinition(
            name="motd", type=STRING, default={"@type": STRING, "value": "hello"}
        ),
        ClusterTemplateParameterDefinition(name="owner", type=STRING, required=True),
    ),
    node_sets={
        "compute": ClusterTemplateNodeSet(host_type=SMALL, size=3),
        "gpu": ClusterTemplateNodeSet(host_type=SMALL, size=1),
    },
    spec_defaults=ClusterTemplateSpecDefaults(
        ssh_public_key="ssh-default", network=ClusterNetwork(pod_cidr="10.128.0.0/14")
    ),
)
OWNER = {"owner": {"@type": STRING, "value": "ann"}}


def _world(*docs: Any, private: bool = False) -> AdmissionContext:
    found = {(type(doc).__name__, doc.id): doc for doc in docs}
    return AdmissionContext(now=NOW, caller=ANN, documents=found, private=private)


def _cluster(**spec: Any) -> Cluster:
    asked = {"template": ClusterTemplateReference(id="ocp"), "template_parameters": OWNER} | spec
    return Cluster(metadata=Metadata(name="one", tenant="acme"), spec=ClusterSpec(**asked))


def _paths(refused: pytest.ExceptionInfo[Refused]) -> set[str]:
    return {violation.path for violation in refused.value.violations}


def test_what_is_not_said_comes_from_the_template() -> None:
    default = _version("v1", is_default=True)
    admitted = ClusterRules().admit_create(_cluster(), _world(TEMPLATE, default))
    assert admitted.spec.node_sets == {
        "compute": ClusterNodeSet(host_type=SMALL, size=3),
        "gpu": ClusterNodeSet(host_type=SMALL, size=1),
    }
    assert set(admitted.spec.template_parameters) == {"motd", "owner"}
    assert admitted.spec.version == ClusterVersionReference(id="v1", name="v1")
    assert admitted.spec.ssh_public_key == "ssh-default"
    assert admitted.spec.network == ClusterNetwork(pod_cidr="10.128.0.0/14")
    assert admitted.status.state == ClusterState.PROGRESSING
    assert admitted.status.state_transition_time == NOW


@pytest.mark.parametrize(
    "asked, versions, chosen",
    [
        pytest.param("v2", [("v1", True), ("v2", False)], "v2", id="the one asked for"),
        pytest.param("", [("v1", True), ("v2", False)], "v1", id="else the default"),
        pytest.param("", [("v2", False)], "", id="else none"),
    ],
)
def test_which_version(asked: str, versions: list[tuple[str, bool]], chosen: str) -> None:
    known = [_version(id, is_default=is_default) for id, is_default in versions]
    cluster = _cluster(version=ClusterVersionReference(id=asked))
    admitted = ClusterRules().admit_create(cluster, _world(TEMPLATE, *known))
    assert admitted.spec.version.id == chosen


def test_the_tenants_own_default_version_comes_first() -> None:
    versions = (_version("a", is_default=True), _version("b", tenant="acme", is_default=True))
    admitted = ClusterRules().admit_create(_cluster(), _world(TEMPLATE, *versions))
    assert admitted.spec.version.id == "b"


def test_the_templates_version_comes_before_the_default() -> None:
    defaults = replace(TEMPLATE.spec_defaults, version=ClusterVersionReference(id="v2", name="v2"))
    template = replace(TEMPLATE, spec_defaults=defaults)
    versions = (_version("v1", is_default=True), _version("v2"))
    admitted = ClusterRules().admit_create(_cluster(), _world(template, *versions))
    assert admitted.spec.version.id == "v2"


@pytest.mark.parametrize(
    "spec",
    [{"enabled": False}, {"state": ClusterVersionState.OBSOLETE}],
)
def test_a_version_that_cannot_be_used_any_more(spec: dict[str, Any]) -> None:
    cluster = _cluster(version=ClusterVersionReference(id="v1"))
    with pytest.raises(Refused) as refused:
        ClusterRules().admit_create(cluster, _world(TEMPLATE, _version("v1", **spec)))
    assert _paths(refused) == {"spec.version"}


def test_everything_that_is_wrong_is_said_together() -> None:
    cluster = _cluster(
        template_parameters={"motd": {"@type": "other", "value": 1}, "what": OWNER["owner"]},
        node_sets={"compute": ClusterNodeSet(size=0), "other": ClusterNodeSet(size=1)},
        network=ClusterNetwork(service_cidr="10.130.0.0/16"),
        auto_external_ip_attachment=True,
    )
    with pytest.raises(Refused) as refused:
        ClusterRules().admit_create(cluster, _world(TEMPLATE))
    assert _paths(refused) == {
        "spec.template_parameters.motd",
        "spec.template_parameters.what",
        "spec.template_parameters.owner",
        "spec.node_sets.compute.size",
        "spec.node_sets.other",
        "spec.network",
        "spec.auto_external_ip_attachment",
    }
    assert all(violation.message for violation in refused.value.violations)


def test_a_tenant_cannot_give_a_cluster_a_status() -> None:
    cluster = replace(_cluster(), status=ClusterStatus(state=ClusterState.READY, hub="mine"))
    admitted = ClusterRules().admit_create(cluster, _world(TEMPLATE))
    assert admitted.status.state == ClusterState.PROGRESSING
    assert admitted.status.hub == ""


def _stored(**status: Any) -> Cluster:
    admitted = ClusterRules().admit_create(_cluster(), _world(TEMPLATE))
    return replace(admitted, status=replace(admitted.status, **status))


def _scaled(cluster: Cluster, **sizes: int) -> Cluster:
    sets = {
        name: replace(cluster.spec.node_sets.get(name, ClusterNodeSet()), size=size)
        for name, size in sizes.items()
    }
    return replace(cluster, spec=replace(cluster.spec, node_sets=sets))


@pytest.mark.parametrize(
    "sizes, path",
    [
        pytest.param({"compute": 9, "gpu": 1}, "", id="a set may grow"),
        pytest.param({"compute": 0, "gpu": 1}, "", id="a set may be empty"),
        pytest.param({"compute": 3}, "", id="a set may go"),
        pytest.param({"compute": -1}, "spec.node_sets.compute.size", id="less than nothing"),
        pytest.param({}, "spec.node_sets", id="one must be left"),
        pytest.param({"compute": 3, "new": 1}, "spec.node_sets.new", id="only the template's"),
        pytest.param({"compute": 10**6}, "spec.node_sets.compute.size", id="too many"),
    ],
)
def test_scaling(sizes: dict[str, int], path: str) -> None:
    old = _stored()
    if not path:
        admitted = ClusterRules().admit_update(old, _scaled(old, **sizes), _world(TEMPLATE))
        assert {name: s.size for name, s in admitted.spec.node_sets.items()} == sizes
        return
    with pytest.raises(Refused) as refused:
        ClusterRules().admit_update(old, _scaled(old, **sizes), _world(TEMPLATE))
    assert _paths(refused) == {path}


def test_a_set_that_comes_back_has_the_templates_host_type() -> None:
    old = _scaled(_stored(), compute=3)
    new = replace(
        old, spec=replace(old.spec, node_sets={**old.spec.node_sets, "gpu": ClusterNodeSet(size=2)})
    )
    admitted = ClusterRules().admit_update(old, new, _world(TEMPLATE))
    assert admitted.spec.node_sets["gpu"] == ClusterNodeSet(host_type=SMALL, size=2)


@pytest.mark.parametrize(
    "change, placed, allowed",
    [
        pytest.param({"zone": "boston"}, False, True, id="a zone before a hub is chosen"),
        pytest.param({"zone": "boston"}, True, False, id="a zone afterwards"),
        pytest.param({"hub_labels": {"a": "b"}}, True, False, id="hub labels afterwards"),
        pytest.param({"ssh_public_key": "new"}, True, True, id="a key"),
        pytest.param({"template": ClusterTemplateReference(id="x")}, False, False, id="template"),
        pytest.param({"template": ClusterTemplateReference()}, False, True, id="template left out"),
        pytest.param({"secret_parameters": "other"}, False, False, id="secret parameters"),
        pytest.param({"secret_parameters": ""}, False, True, id="secret parameters left out"),
        pytest.param(
            {"network": ClusterNetwork(pod_cidr="10.0.0.0/16")}, False, False, id="network"
        ),
        pytest.param({"network": None}, False, True, id="network left out"),
    ],
)
def test_what_may_change(change: dict[str, Any], placed: bool, allowed: bool) -> None:
    old = _stored(hub="boston-1" if placed else "")
    new = replace(old, spec=replace(old.spec, **change))
    if allowed:
        ClusterRules().admit_update(old, new, _world(TEMPLATE))
        return
    with pytest.raises(Refused) as refused:
        ClusterRules().admit_update(old, new, _world(TEMPLATE))
    assert _paths(refused) == {f"spec.{name}" for name in change}


@pytest.mark.parametrize("state", list(ClusterState))
def test_a_cluster_may_be_mended_in_every_state_but_not_while_it_is_deleted(
    state: ClusterState,
) -> None:
    old = _stored(state=state)
    ClusterRules().admit_update(old, _scaled(old, compute=1), _world(TEMPLATE))
    leaving = replace(old, metadata=replace(old.metadata, deletion_timestamp=NOW))
    with pytest.raises(Precondition):
        ClusterRules().admit_update(leaving, _scaled(leaving, compute=1), _world(TEMPLATE))
    labelled = replace(leaving, metadata=replace(leaving.metadata, labels={"a": "b"}))
    assert ClusterRules().admit_update(leaving, labelled, _world(TEMPLATE)) == labelled


def test_a_condition_is_there_once() -> None:
    old = _stored()
    twice = (ClusterCondition(type=ClusterConditionType.READY),) * 2
    new = replace(old, status=replace(old.status, conditions=twice))
    with pytest.raises(Refused) as refused:
        ClusterRules().admit_update(old, new, _world(TEMPLATE, private=True))
    assert _paths(refused) == {"status.conditions[1].type"}


def test_the_moment_a_version_is_deprecated_is_written_once() -> None:
    old = ClusterVersionRules().admit_create(_version("v1"), _world(private=True))
    assert old.spec.enabled is True
    assert old.spec.state == ClusterVersionState.ACTIVE
    spec = replace(old.spec, state=ClusterVersionState.DEPRECATED)
    new = ClusterVersionRules().admit_update(old, replace(old, spec=spec), _world())
    assert new.spec.deprecation.deprecation_timestamp == NOW
    later = AdmissionContext(now=NOW + timedelta(days=1), caller=ANN)
    again = ClusterVersionRules().admit_update(
        new, replace(new, metadata=Metadata(name="x")), later
    )
    assert again.spec.deprecation.deprecation_timestamp == NOW


def test_a_version_is_there_once_per_tenant() -> None:
    with pytest.raises(Exists):
        ClusterVersionRules().admit_create(_version("v2"), _world(_version("v1"), private=True))
    ClusterVersionRules().admit_create(
        _version("v2"), _world(_version("v1", tenant="acme"), private=True)
    )


def test_whoever_becomes_the_default_takes_it_from_the_one_that_was() -> None:
    old, other = _version("v1", is_default=True), _version("v2", tenant="acme", is_default=True)
    new = _version("v3", is_default=True)
    changed = ClusterVersionRules().companion_changes(new, _world(old, other, new))
    assert [one.id for one in changed] == ["v1"]
    assert changed[0].spec.is_default is False
    assert ClusterVersionRules().companion_changes(_version("v4"), _world(old)) == ()


@pytest.mark.parametrize(
    "domain, good",
    [
        ("example.com", True),
        ("a-b.example.com", True),
        ("example", False),
        ("Example.com", False),
        ("10.0.0.1", False),
        ("-a.example", False),
        ("a..b", False),
        ("", False),
        (".".join(["a" * 60] * 5), False),
    ],
)
def test_domains(domain: str, good: bool) -> None:
    tenant = Tenant(metadata=Metadata(name="acme"), spec=TenantSpec(domains=(domain,)))
    if good:
        assert TenantRules().admit_create(tenant, _world()).id == "acme"
        return
    with pytest.raises(Refused):
        TenantRules().admit_create(tenant, _world())


def test_a_nested_project_is_in_its_parent() -> None:
    child = Project(metadata=Metadata(name="dev.web", tenant="acme"))
    completed = ProjectRules().fill_defaults(child)
    assert completed.metadata.project == "dev"
    assert ProjectRules().admit_create(completed, _world()) is not None
    elsewhere = replace(completed, metadata=replace(completed.metadata, project="ops"))
    with pytest.raises(Refused):
        ProjectRules().admit_create(elsewhere, _world())


@pytest.mark.parametrize(
    "id, name",
    [("boston_1", "boston-1"), ("osac.templates.ocp_4_17", "ocp-4-17"), ("Plain", "plain")],
)
def test_a_name_from_an_id(id: str, name: str) -> None:
    assert metadata_rules.name_from_id(id) == name


@pytest.mark.parametrize(
    "key, value, good",
    [
        ("a", "", True),
        ("a", "b-c_d.e", True),
        ("app.example.com/part", "web", True),
        ("a", "B", False),
        ("a", "x" * 64, False),
        ("/a", "b", False),
        ("a/", "b", False),
        ("UP.example/part", "b", False),
        ("a" * 64, "b", False),
        (f"{'a.' * 130}b/c", "d", False),
    ],
)
def test_labels(key: str, value: str, good: bool) -> None:
    assert (not list(metadata_rules.tag_violations({key: value}, {}))) is good
