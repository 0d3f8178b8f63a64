"""Roles through the API: published, shown as forms, ordered from, withdrawn; and what a cluster keeps of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from boatyard.model.generated.osac import Cluster, ClusterState
from boatyard.resources.cluster_templates.contents import ContentFolders
from boatyard.resources.cluster_templates.publisher import TemplatePublisher
from boatyard.roles.content import digest_of
from boatyard.roles.parameter_values import decode_secrets, plain_values
from tests.api import samples
from tests.api.backups import HUB, progress
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Failed
from tests.api.publishing import (
    CLUSTERS,
    SECRET,
    SOURCES,
    TEMPLATES,
    TYPE,
    number,
    order,
    publish,
    text,
    web,
)
from tests.api.roles import As

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_published_role_is_in_the_catalogue_and_has_a_form(
    operator: As, member: As, door: Any
) -> None:
    name = f"first_{door.name}"
    source = await publish(operator, name)

    assert source["status"]["state"] == "TEMPLATE_SOURCE_STATE_OFFERED"
    shown = await member(f"{PUBLIC}.ClusterTemplates", "Get", id=name)
    assert shown["metadata"]["name"] == name.replace("_", "-")
    assert shown["digest"] == source["status"]["digest"] == digest_of(web(name))
    assert shown["phases"] == ["post_install"]
    assert "form" not in shown
    by_name = {one["name"]: one for one in shown["parameters"]}
    assert by_name["greeting"]["default"] == text("hello")
    assert by_name["replicas"] == {
        "name": "replicas",
        "title": "replicas",
        "required": True,
        "type": f"{TYPE}Int64Value",
    }
    assert by_name["password"]["no_log"] is True
    schema = json.loads(await member(TEMPLATES, "GetSchema", template=name))
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["replicas"]
    assert schema["properties"]["replicas"]["enum"] == [1, 2, 3]


async def test_a_role_with_mistakes_is_answered_with_all_of_them_and_not_offered(
    operator: As, member: As, door: Any
) -> None:
    name = f"faulty_{door.name}"
    specs = "argument_specs: {main: {options: {a: {type: integer}, b: {requried: true}}}}"

    source = await publish(operator, name, specs=specs)

    assert source["status"]["state"] == "TEMPLATE_SOURCE_STATE_FAULTY"
    found = {one["path"]: one for one in source["status"]["mistakes"]}
    assert set(found) == {f"argument_specs.main.options.{one}" for one in ("a.type", "b.requried")}
    assert found["argument_specs.main.options.a.type"]["file"] == "meta/argument_specs.yml"
    failed = await member.refused(f"{PUBLIC}.ClusterTemplates", "Get", id=name)
    assert failed.code == "NOT_FOUND"
    kept = await operator(SOURCES, "Get", id=name)
    assert kept["status"]["mistakes"] == source["status"]["mistakes"]


@pytest.mark.parametrize(
    "template, words",
    [
        pytest.param(
            "node_sets: {a: {host_type: none, size: 1}}", "there is no host type 'none'", id="host"
        ),
        pytest.param(
            "node_sets: {a: {host_type: small, size: 1}}\nversions: {default: '9.9'}",
            "there is no version '9.9'",
            id="version",
        ),
        pytest.param(
            "node_sets: {a: {host_type: small, size: 1}}\nallowed_host_types: [huge]",
            "there is no host type 'huge'",
            id="allowed host",
        ),
        pytest.param(
            "id: ocp\nnode_sets: {a: {host_type: small, size: 1}}",
            "was made by hand",
            id="taken id",
        ),
        pytest.param(
            "name: ocp\nnode_sets: {a: {host_type: small, size: 1}}",
            "another template is called 'ocp'",
            id="taken name",
        ),
        pytest.param(
            "network: {pod_cidr: nonsense}\nnode_sets: {a: {host_type: small, size: 1}}",
            "spec_defaults.network",
            id="network",
        ),
    ],
)
async def test_what_the_catalogue_does_not_have_is_a_mistake(
    operator: As, template: str, words: str, request: pytest.FixtureRequest
) -> None:
    name = f"lacking_{abs(hash(request.node.name)) % 10**8}"

    source = await publish(operator, name, template=template)

    assert source["status"]["state"] == "TEMPLATE_SOURCE_STATE_FAULTY"
    (mistake,) = source["status"]["mistakes"]
    assert words in f"{mistake['path']} {mistake['message']}"


@pytest.mark.parametrize(
    "body, path",
    [
        pytest.param({"role": "a/b"}, "role", id="a path for a name"),
        pytest.param({"role": ".."}, "role", id="a way out"),
        pytest.param({"role": "x", "files": [{"path": "../x"}]}, "files[0].path", id="a file out"),
        pytest.param({"role": "x", "files": [{"path": "/x"}]}, "files[0].path", id="absolute"),
        pytest.param(
            {"role": "x", "files": [{"path": "a"}, {"path": "a"}]}, "files[1].path", id="twice"
        ),
        pytest.param(
            {"role": "x", "files": [{"path": f"f{n}"} for n in range(1001)]}, "files", id="many"
        ),
    ],
)
async def test_what_is_no_role_is_refused(
    environment: ApiEnvironment, body: dict[str, Any], path: str
) -> None:
    with pytest.raises(Failed) as failed:
        await environment.grpc.call(TEMPLATES, "Publish", body, token=environment.token("operator"))

    assert failed.value.code == "INVALID_ARGUMENT"
    assert path in failed.value.violations


async def test_an_order_is_checked_against_the_form_before_anything_runs(
    operator: As, member: As, door: Any
) -> None:
    name = f"checked_{door.name}"
    await publish(operator, name)
    wrong = order("x", name, greeting=number(5), replicas=number(7), colour=text("red"))

    failed = await member.refused(CLUSTERS, "Create", object=wrong)

    assert set(failed.violations) == {
        f"spec.template_parameters.{one}" for one in ("greeting", "replicas", "colour")
    }
    assert "give one of 1, 2, 3" in failed.violations["spec.template_parameters.replicas"]
    made = await member(CLUSTERS, "Create", object=order(f"c-{door.name}", name))
    assert made["spec"]["template_parameters"] == {"greeting": text("hello"), "replicas": number(2)}
    assert made["spec"]["template_digest"] == digest_of(web(name))


async def test_a_secret_parameter_is_shown_nowhere(
    environment: ApiEnvironment, operator: As, member: As, door: Any
) -> None:
    name = f"secret_{door.name}"
    await publish(operator, name)
    asked = order(f"s-{door.name}", name, password=text(SECRET))

    made = await member(CLUSTERS, "Create", object=asked)

    spec = made["spec"]
    assert (spec["secret_parameters"], "password" in spec["template_parameters"]) == ("***", False)
    for reader in (member, operator):
        package = PUBLIC if reader is member else PRIVATE
        shown = await reader(f"{package}.Clusters", "Get", id=made["id"])
        assert SECRET not in json.dumps(shown)
    rows = await environment.ledger.read(
        "looking", "select data::text from documents union all select data::text from events"
    )
    assert not any(SECRET in (row[0] or "") for row in rows)
    kept = await environment.ledger.documents.get(Cluster, made["id"])
    assert kept is not None
    assert plain_values(decode_secrets(kept.spec.secret_parameters)) == {"password": SECRET}
    # Read and written back, it is the same.
    back = {**shown, "metadata": {**shown["metadata"], "labels": {"a": "b"}}}
    await operator(f"{PRIVATE}.Clusters", "Update", object=back)
    again = await environment.ledger.documents.get(Cluster, made["id"])
    assert again is not None
    assert again.spec == kept.spec


async def test_a_wrong_secret_is_not_in_the_answer(operator: As, member: As, door: Any) -> None:
    name = f"hushed_{door.name}"
    await publish(operator, name)
    wrong = order("x", name, password={"@type": f"{TYPE}Value", "value": [SECRET]})

    failed = await member.refused(CLUSTERS, "Create", object=wrong)

    assert SECRET not in failed.message + json.dumps(failed.violations)
    assert "spec.template_parameters.password" in failed.violations


async def test_a_cluster_keeps_the_content_it_was_ordered_with(
    environment: ApiEnvironment, operator: As, member: As, door: Any, tmp_path: Any
) -> None:
    name = f"kept_{door.name}"
    old = digest_of(web(name))
    await publish(operator, name)
    made = await member(CLUSTERS, "Create", object=order(f"k-{door.name}", name))

    newer = await publish(operator, name, tasks="- ansible.builtin.debug: {msg: newer}\n")

    assert newer["status"]["digest"] != old
    scaled = await member(
        CLUSTERS,
        "Update",
        object={"id": made["id"], "spec": {"node_sets": {"compute": {"size": 5}}}},
        update_mask="spec.node_sets.compute.size",
    )
    assert scaled["spec"]["template_digest"] == old
    folders = ContentFolders(tmp_path / "contents", environment.ledger.contents.get)
    for digest, words in ((old, b"{{ greeting }}"), (newer["status"]["digest"], b"newer")):
        folder = await folders.ensure_folder(digest)
        assert words in (folder / "tasks" / "post_install.yaml").read_bytes()
    later = await member(CLUSTERS, "Create", object=order(f"l-{door.name}", name))
    assert later["spec"]["template_digest"] == newer["status"]["digest"]
    stale = order("x", name)
    stale["spec"]["template_digest"] = old
    failed = await member.refused(CLUSTERS, "Create", object=stale)
    assert "spec.template_digest" in failed.violations


async def test_an_upgrade_keeps_the_content_it_was_ordered_with(
    environment: ApiEnvironment, operator: As, member: As, door: Any
) -> None:
    name, service = f"upgraded_{door.name}", f"{PRIVATE}.ClusterVersions"
    minor = {"rest": 21, "grpc": 23}[door.name]
    first, second = [
        (await operator(service, "Create", object=samples.version(f"7.{number}.1")))["id"]
        for number in (minor, minor + 1)
    ]
    await publish(operator, name)
    wish = order(f"u-{door.name}", name)
    wish["spec"]["version"] = {"id": first}
    made = await member(CLUSTERS, "Create", object=wish)
    await progress(
        environment, made["id"], state=ClusterState.READY, hub=HUB, version=f"7.{minor}.1"
    )

    narrow = (
        f"id: {name}\ntitle: Web\nnode_sets: {{compute: {{host_type: small, size: 3}}}}\n"
        f'versions: {{below: "7.{minor + 1}"}}\n'
    )
    newer = await publish(operator, name, template=narrow)
    upgraded = await member(
        CLUSTERS,
        "Update",
        object={"id": made["id"], "spec": {"version": {"id": second}}},
        update_mask="spec.version",
    )

    assert newer["status"]["digest"] != made["spec"]["template_digest"]
    assert upgraded["spec"]["version"]["id"] == second
    for kept in ("template_digest", "template_phases"):
        assert upgraded["spec"][kept] == made["spec"][kept]


async def test_a_withdrawn_template_takes_no_new_orders_and_old_ones_go_on(
    environment: ApiEnvironment, operator: As, member: As, door: Any
) -> None:
    name = f"gone_{door.name}"
    await publish(operator, name)
    made = await member(CLUSTERS, "Create", object=order(f"g-{door.name}", name))

    await TemplatePublisher(environment.ledger).withdraw(name)

    failed = await member.refused(CLUSTERS, "Create", object=order("x", name))
    assert failed.violations["spec.template"].startswith("is no longer offered")
    listed = await member(f"{PUBLIC}.ClusterTemplates", "List", filter=f"this.id == '{name}'")
    assert listed.get("items", []) == []
    asked = f"this.id == '{name}' && this.withdrawn == true"
    listed = await member(f"{PUBLIC}.ClusterTemplates", "List", filter=asked)
    assert [one["id"] for one in listed["items"]] == [name]
    await member(
        CLUSTERS,
        "Update",
        object={"id": made["id"], "spec": {"node_sets": {"compute": {"size": 4}}}},
        update_mask="spec.node_sets.compute.size",
    )
    await publish(operator, name)
    await member(CLUSTERS, "Create", object=order(f"h-{door.name}", name))
