"""Roles through the API: published, shown as forms, ordered from, withdrawn; and what a cluster keeps of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from boatyard.model.generated.boatyard import TemplateSourceState
from boatyard.model.generated.osac import Cluster, ClusterTemplate
from boatyard.resources.cluster_templates.contents import ContentFolders
from boatyard.resources.cluster_templates.offering import PUBLISHED, Offering
from boatyard.roles.content import Files, digest_of
from boatyard.roles.values import plain_values, unsealed
from tests.api.doors import OURS, PRIVATE, PUBLIC, Failed, Yard
from tests.api.roles import As
from tests.support.roles import files

TEMPLATES, SOURCES = f"{OURS}.Templates", f"{OURS}.TemplateSources"
CLUSTERS = f"{PUBLIC}.Clusters"
TYPE = "type.googleapis.com/google.protobuf."
SECRET = "hunter2-hunter2"

pytestmark = pytest.mark.asyncio(loop_scope="module")


def web(name: str, **changes: str | None) -> Files:
    """A role whose template is called like it; host types are those of this suite."""
    template = changes.pop("template", "") or (
        f"id: {name}\ntitle: Web\nnode_sets: {{compute: {{host_type: small, size: 3}}}}\n"
    )
    return files(template=template, **changes)


def sent(made: Files) -> list[dict[str, Any]]:
    return [
        {"path": path, "content": base64.b64encode(file.data).decode()}
        for path, file in made.items()
    ]


async def publish(operator: As, name: str, **changes: str | None) -> Any:
    made = await operator(TEMPLATES, "Publish", role=name, files=sent(web(name, **changes)))
    return made["object"]


def text(value: str) -> dict[str, str]:
    return {"@type": f"{TYPE}StringValue", "value": value}


def number(value: int) -> dict[str, str]:
    return {"@type": f"{TYPE}Int64Value", "value": str(value)}


def order(name: str, template: str, **parameters: Any) -> dict[str, Any]:
    given = {"replicas": number(2)} | parameters
    spec = {"template": {"id": template}, "template_parameters": given}
    return {"metadata": {"name": name}, "spec": spec}


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
async def test_what_is_no_role_is_refused(yard: Yard, body: dict[str, Any], path: str) -> None:
    with pytest.raises(Failed) as failed:
        await yard.grpc.call(TEMPLATES, "Publish", body, token=yard.token("operator"))

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
    yard: Yard, operator: As, member: As, door: Any
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
    rows = await yard.ledger.read(
        "looking", "select data::text from documents union all select data::text from events"
    )
    assert not any(SECRET in (row[0] or "") for row in rows)
    kept = await yard.ledger.get(Cluster, made["id"])
    assert kept is not None
    assert plain_values(unsealed(kept.spec.secret_parameters)) == {"password": SECRET}
    # Read and written back, it is the same.
    back = {**shown, "metadata": {**shown["metadata"], "labels": {"a": "b"}}}
    await operator(f"{PRIVATE}.Clusters", "Update", object=back)
    again = await yard.ledger.get(Cluster, made["id"])
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
    yard: Yard, operator: As, member: As, door: Any, tmp_path: Any
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
    folders = ContentFolders(tmp_path / "contents", yard.ledger.contents.get)
    for digest, words in ((old, b"{{ greeting }}"), (newer["status"]["digest"], b"newer")):
        folder = await folders.folder(digest)
        assert words in (folder / "tasks" / "post_install.yaml").read_bytes()
    later = await member(CLUSTERS, "Create", object=order(f"l-{door.name}", name))
    assert later["spec"]["template_digest"] == newer["status"]["digest"]
    stale = order("x", name)
    stale["spec"]["template_digest"] = old
    failed = await member.refused(CLUSTERS, "Create", object=stale)
    assert "spec.template_digest" in failed.violations


async def test_a_withdrawn_template_takes_no_new_orders_and_old_ones_go_on(
    yard: Yard, operator: As, member: As, door: Any
) -> None:
    name = f"gone_{door.name}"
    await publish(operator, name)
    made = await member(CLUSTERS, "Create", object=order(f"g-{door.name}", name))

    await Offering(yard.ledger).withdraw(name)

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


async def test_the_same_content_again_changes_nothing(yard: Yard, operator: As) -> None:
    first = await publish(operator, "twice")
    before = await yard.ledger.get(ClusterTemplate, "twice")
    again = await publish(operator, "twice")
    after = await yard.ledger.get(ClusterTemplate, "twice")

    assert (again, after) == (first, before)


async def test_what_an_operator_has_set_stays_with_the_template(
    yard: Yard, operator: As, door: Any
) -> None:
    name = f"secretive_{door.name}"
    await publish(operator, name)
    await operator(
        f"{PRIVATE}.ClusterTemplates",
        "Update",
        object={"id": name, "spec_defaults": {"pull_secret": SECRET}},
        update_mask="spec_defaults.pull_secret",
    )

    await publish(operator, name, tasks="- ansible.builtin.debug: {msg: newer}\n")

    kept = await yard.ledger.get(ClusterTemplate, name)
    assert kept is not None
    assert kept.spec_defaults.pull_secret == SECRET


async def test_mistakes_leave_on_offer_what_was_there_before(yard: Yard, operator: As) -> None:
    good = await publish(operator, "spoilt")
    bad = await publish(operator, "spoilt", specs="argument_specs: {main: {options: 5}}")

    assert bad["status"]["state"] == "TEMPLATE_SOURCE_STATE_FAULTY"
    assert bad["status"]["digest"] == good["status"]["digest"]
    kept = await yard.ledger.get(ClusterTemplate, "spoilt")
    assert kept is not None
    assert (kept.digest, kept.withdrawn) == (good["status"]["digest"], False)


async def test_one_template_belongs_to_one_role(yard: Yard, operator: As) -> None:
    template = "id: shared_id\nnode_sets: {a: {host_type: small, size: 1}}"
    await publish(operator, "one_role", template=template)

    other = await publish(operator, "other_role", template=template)
    elsewhere = await Offering(yard.ledger).offer("one_role", web("x"), origin="/folder")

    assert "is the template of the role 'one_role'" in other["status"]["mistakes"][0]["message"]
    assert elsewhere.status.state == TemplateSourceState.FAULTY
    kept = await operator(SOURCES, "Get", id="one_role")
    assert (kept["status"]["origin"], kept["status"]["state"]) == (
        PUBLISHED,
        "TEMPLATE_SOURCE_STATE_OFFERED",
    )


async def test_a_role_that_changes_its_id_leaves_the_old_one(yard: Yard, operator: As) -> None:
    sets = "node_sets: {a: {host_type: small, size: 1}}"
    await publish(operator, "moving", template=f"id: before\n{sets}")
    await publish(operator, "moving", template=f"id: after\n{sets}")

    before = await yard.ledger.get(ClusterTemplate, "before")
    after = await yard.ledger.get(ClusterTemplate, "after")
    assert before is not None
    assert after is not None
    assert (before.withdrawn, after.withdrawn) == (True, False)


@pytest.mark.parametrize("field", ["digest", "form", "phases"])
async def test_what_publishing_writes_is_written_by_nothing_else(
    operator: As, field: str, door: Any
) -> None:
    value: Any = ["x"] if field == "phases" else "x"
    made = {"id": f"hand_{field}_{door.name}", field: value}

    failed = await operator.refused(f"{PRIVATE}.ClusterTemplates", "Create", object=made)

    assert field in failed.violations


async def test_the_form_of_a_role_is_not_changed_by_hand(operator: As, door: Any) -> None:
    name = f"fixed_{door.name}"
    await publish(operator, name)

    failed = await operator.refused(
        f"{PRIVATE}.ClusterTemplates",
        "Update",
        object={"id": name, "parameters": []},
        update_mask="parameters",
    )

    assert "parameters" in failed.violations


async def test_hosts_and_versions_are_those_that_the_role_allows(
    operator: As, member: As, door: Any
) -> None:
    name = f"bounds_{door.name}"
    template = (
        f"id: {name}\nnode_sets: {{compute: {{host_type: small, size: 3}}}}\n"
        "allowed_host_types: [large]\nversions: {from: '4.17.2', below: '4.18'}\n"
    )
    await publish(operator, name, template=template)
    asked = order(f"b-{door.name}", name)
    asked["spec"]["node_sets"] = {"compute": {"host_type": {"name": "large"}, "size": 1}}

    made = await member(CLUSTERS, "Create", object=asked)

    assert made["spec"]["node_sets"]["compute"]["host_type"]["id"] == "large"
    assert made["spec"]["version"]["name"] == "v4-17-2"  # the default is older than the bound
    asked["metadata"]["name"] = "x"
    asked["spec"]["version"] = {"name": "v4-17-1"}
    failed = await member.refused(CLUSTERS, "Create", object=asked)
    assert "4.17.2 or later, below 4.18" in failed.violations["spec.version"]
