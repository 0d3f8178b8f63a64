"""What is on offer when roles change, clash, or are bounded; and what nobody writes by hand."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.ledger.changes import Archive, EventNote, Insert
from boatyard.model.caller import SYSTEM
from boatyard.model.generated.boatyard import TemplateSourceState
from boatyard.model.generated.osac import ClusterTemplate, Hub, HubSpec, Metadata
from boatyard.resources.cluster_templates.publisher import PUBLISHED_ORIGIN, TemplatePublisher
from tests.api.doors import PRIVATE, ApiEnvironment
from tests.api.publishing import (
    CLUSTERS,
    SECRET,
    SOURCES,
    order,
    publish,
    web,
)
from tests.api.roles import As

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_same_content_again_changes_nothing(
    environment: ApiEnvironment, operator: As
) -> None:
    first = await publish(operator, "twice")
    before = await environment.ledger.documents.get(ClusterTemplate, "twice")
    again = await publish(operator, "twice")
    after = await environment.ledger.documents.get(ClusterTemplate, "twice")

    assert (again, after) == (first, before)


async def test_what_an_operator_has_set_stays_with_the_template(
    environment: ApiEnvironment, operator: As, door: Any
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

    kept = await environment.ledger.documents.get(ClusterTemplate, name)
    assert kept is not None
    assert kept.spec_defaults.pull_secret == SECRET


async def test_mistakes_leave_on_offer_what_was_there_before(
    environment: ApiEnvironment, operator: As
) -> None:
    good = await publish(operator, "spoilt")
    bad = await publish(operator, "spoilt", specs="argument_specs: {main: {options: 5}}")

    assert bad["status"]["state"] == "TEMPLATE_SOURCE_STATE_FAULTY"
    assert bad["status"]["digest"] == good["status"]["digest"]
    kept = await environment.ledger.documents.get(ClusterTemplate, "spoilt")
    assert kept is not None
    assert (kept.digest, kept.withdrawn) == (good["status"]["digest"], False)


@pytest.mark.parametrize(
    "platform, label",
    [
        pytest.param("missing", "missing", id="one is wanted, wherever it is"),
        pytest.param("[missing, any]", None, id="else any"),
        pytest.param("[planted, any]", "planted", id="the first"),
        pytest.param("[missing, planted]", "planted", id="the first that some hub has"),
    ],
)
async def test_a_platform_is_chosen_by_what_hubs_have(
    environment: ApiEnvironment, operator: As, platform: str, label: str | None
) -> None:
    hub = Hub(
        id="labelled",
        metadata=Metadata(name="labelled", tenant=SYSTEM),
        spec=HubSpec(labels={"platform": "planted"}, cordoned=True),
    )
    await environment.ledger.commit(
        [Insert(hub, EventNote("Created", "x"))], now=environment.ledger.clock.now()
    )
    try:
        template = f"node_sets: {{a: {{host_type: small, size: 1}}}}\nplatform: {platform}\n"
        await publish(operator, "choosy", template=template)
    finally:
        kept = await environment.ledger.documents.get(Hub, "labelled")
        assert kept is not None
        await environment.ledger.commit(
            [Archive(kept, EventNote("Gone", "x"))], now=environment.ledger.clock.now()
        )

    made = await environment.ledger.documents.get(ClusterTemplate, "choosy")
    assert made is not None
    assert made.hub_labels.get("platform") == label


async def test_one_template_belongs_to_one_role(environment: ApiEnvironment, operator: As) -> None:
    template = "id: shared_id\nnode_sets: {a: {host_type: small, size: 1}}"
    await publish(operator, "one_role", template=template)

    other = await publish(operator, "other_role", template=template)
    elsewhere = await TemplatePublisher(environment.ledger).publish(
        "one_role", web("x"), origin="/folder"
    )

    assert "is the template of the role 'one_role'" in other["status"]["mistakes"][0]["message"]
    assert elsewhere.status.state == TemplateSourceState.FAULTY
    kept = await operator(SOURCES, "Get", id="one_role")
    assert (kept["status"]["origin"], kept["status"]["state"]) == (
        PUBLISHED_ORIGIN,
        "TEMPLATE_SOURCE_STATE_OFFERED",
    )


async def test_a_role_that_changes_its_id_leaves_the_old_one(
    environment: ApiEnvironment, operator: As
) -> None:
    sets = "node_sets: {a: {host_type: small, size: 1}}"
    await publish(operator, "moving", template=f"id: before\n{sets}")
    await publish(operator, "moving", template=f"id: after\n{sets}")

    before = await environment.ledger.documents.get(ClusterTemplate, "before")
    after = await environment.ledger.documents.get(ClusterTemplate, "after")
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
