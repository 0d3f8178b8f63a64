"""Hubs through the API: what is refused, what is hidden, what operators are told, and that tenants learn nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from boatyard.api.authentication import TokenIssuer
from boatyard.ledger.changes import Archive, Insert
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.generated.boatyard import Order, OrderSpec
from boatyard.model.generated.osac import Hub, Metadata
from boatyard.wiring.driver_factory import load_setting_checks
from boatyard.wiring.hub_clients import HubClients
from boatyard.wiring.hub_manifests import make_hub_access
from tests.api.doors import OURS, PRIVATE, PUBLIC, ApiEnvironment, running
from tests.api.roles import BY_KIND, As
from tests.support.kubeconfigs import SECRET, inline, kubeconfig

HUBS, VERBS = f"{PRIVATE}.Hubs", f"{OURS}.Hubs"
NOWHERE = inline(kubeconfig("https://127.0.0.1:1"))

together = pytest.mark.asyncio(loop_scope="module")  # of tests that share the suite's server


@pytest.fixture
async def reaching(ledger: Ledger, issuer: TokenIssuer) -> AsyncIterator[ApiEnvironment]:
    """A server that reaches hubs; the others of this suite do not."""
    clients = HubClients()
    async with running(
        ledger, issuer, hub_access=make_hub_access(clients), setting_checks=load_setting_checks()
    ) as environment:
        yield environment
    await clients.close()


@pytest.fixture(params=["grpc", "rest"])
def chief(request: pytest.FixtureRequest, reaching: ApiEnvironment) -> As:
    return As(reaching, reaching.door(request.param), "operator")


def a_hub(config: str = NOWHERE, **spec: Any) -> dict[str, Any]:
    return {"id": "one", "metadata": {"name": "one"}, "spec": {"kubeconfig": config, **spec}}


@pytest.mark.parametrize(
    "config, words",
    [
        pytest.param(
            kubeconfig(user={"exec": {"command": "id"}}), "users['u'].user.exec", id="a program"
        ),
        pytest.param(
            kubeconfig(user={"tokenFile": "/etc/passwd"}), "users['u'].user.tokenFile", id="a file"
        ),
        pytest.param(SECRET.encode(), "is not a kubeconfig", id="something else"),
    ],
)
@together
async def test_what_only_the_author_can_mend_is_refused_with_field_and_remedy(
    operator: As, config: bytes, words: str
) -> None:
    failed = await operator.refused(HUBS, "Create", object=a_hub(inline(config)))

    assert failed.code == "INVALID_ARGUMENT"
    assert words in failed.violations["spec.kubeconfig"]
    assert SECRET not in failed.message + str(failed.violations)


async def test_a_kubeconfig_is_never_shown_again(
    chief: As, reaching: ApiEnvironment, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    made = await chief(HUBS, "Create", object=a_hub(zone="lyon"))
    new = inline(kubeconfig("https://127.0.0.1:2", token=f"{SECRET}-too"))
    update = {"id": "one", "spec": {"kubeconfig": new}}
    changed = await chief(HUBS, "Update", object=update, update_mask="spec.kubeconfig")
    answers = [
        made,
        changed,
        await chief(HUBS, "Get", id="one"),
        await chief(HUBS, "List"),
        await chief(VERBS, "Check", hub="one"),
        await chief.refused(VERBS, "Prepare", hub="one"),
    ]

    shown = json.dumps(answers, default=str) + caplog.text
    await reaching.ledger.events.publish()
    happened = await reaching.ledger.events.list_history([("Hub", "one")], 100)
    assert {"Created", "Changed"} <= {row.reason for row in happened}
    shown += " ".join(f"{row.reason} {row.message}" for row in happened)
    assert SECRET not in shown
    assert inline(kubeconfig("https://127.0.0.1:1"))[:200] not in shown
    kept = await reaching.ledger.documents.get(Hub, "one")
    assert kept is not None
    assert SECRET.encode() in kept.spec.kubeconfig
    assert kept.metadata.generation == 2


async def test_settings_that_a_driver_cannot_work_with_are_refused(chief: As) -> None:
    hosted = {"drivers": {"platform": "hosted"}, "settings": {"hosted.platform": "Nonsense"}}

    failed = await chief.refused(HUBS, "Create", object=a_hub(**hosted))

    assert failed.code == "INVALID_ARGUMENT"
    assert "spec.settings.hosted.platform: 'Nonsense' is not understood" in failed.message
    assert "set it to one of Agent, KubeVirt, None" in failed.message


async def test_where_orders_are_does_not_change_under_a_cluster(
    chief: As, reaching: ApiEnvironment
) -> None:
    """Also when nobody has looked at the hub since the cluster was placed."""
    await chief(HUBS, "Create", object=a_hub())
    about = Metadata(name="web", tenant="system", creation_timestamp=reaching.ledger.clock.now())
    order = Order(id="web", metadata=about, spec=OrderSpec(hub="one"))
    await reaching.ledger.commit([Insert(order)], now=reaching.ledger.clock.now())
    moved = {"id": "one", "spec": {"namespace": "ours"}}

    failed = await chief.refused(HUBS, "Update", object=moved, update_mask="spec.namespace")

    assert failed.code == "FAILED_PRECONDITION"
    assert "spec.namespace cannot change: Hub 'one' is in use by Order 'web'" in failed.message
    assert "register another hub" in failed.message
    kept = await reaching.ledger.documents.get(Order, "web")
    assert kept is not None
    await reaching.ledger.commit([Archive(kept)], now=reaching.ledger.clock.now())
    made = await chief(HUBS, "Update", object=moved, update_mask="spec.namespace")
    assert made["spec"]["namespace"] == "ours"


async def test_a_hub_that_does_not_answer_is_registered_and_told(chief: As) -> None:
    await chief(HUBS, "Create", object=a_hub())

    report = await chief(VERBS, "Check", hub="one")

    (finding,) = report["findings"]
    assert (finding["check"], finding["result"]) == ("reachable", "HUB_FINDING_RESULT_FAILED")
    assert "https://127.0.0.1:1" in finding["message"]
    assert finding["remedy"]
    assert not report.get("ready")


async def test_a_hub_is_found_by_its_name_too(chief: As) -> None:
    await chief(HUBS, "Create", object={**a_hub(), "metadata": {"name": "called"}})

    assert (await chief(VERBS, "Check", hub="called"))["hub"] == "one"
    failed = await chief.refused(VERBS, "Check", hub="nobody")
    assert failed.code == "NOT_FOUND"
    assert (await chief.refused(VERBS, "Check", hub="a" * 1000)).code == "INVALID_ARGUMENT"


async def test_preparing_a_hub_that_does_not_answer_says_why(chief: As) -> None:
    await chief(HUBS, "Create", object=a_hub())

    failed = await chief.refused(VERBS, "Prepare", hub="one")

    assert failed.code == "FAILED_PRECONDITION", "this server is well"
    assert "cannot be reached" in failed.message


async def test_an_embedded_hub_needs_nothing_installed(chief: As) -> None:
    hub = {"id": "two", "metadata": {"name": "two"}, "spec": {"drivers": {"dns": "sim"}}}
    await chief(HUBS, "Create", object=hub)

    (finding,) = (await chief(VERBS, "Check", hub="two"))["findings"]
    assert finding["check"] == "drivers"
    failed = await chief.refused(VERBS, "Prepare", hub="two")
    assert failed.code == "FAILED_PRECONDITION"


@together
async def test_a_server_that_reaches_no_hubs_says_so(operator: As) -> None:
    made = await operator(HUBS, "Create", object=BY_KIND["Hub"].fresh())

    failed = await operator.refused(VERBS, "Check", hub=made["id"])

    assert failed.code == "FAILED_PRECONDITION"


@together
async def test_a_hub_is_cordoned_without_touching_anything_else(
    operator: As, environment: ApiEnvironment
) -> None:
    made = await operator(HUBS, "Create", object=BY_KIND["Hub"].fresh())
    for cordoned in (True, False):
        await operator(
            HUBS,
            "Update",
            object={"id": made["id"], "spec": {"cordoned": cordoned}},
            update_mask="spec.cordoned",
        )
        kept = await environment.ledger.documents.get(Hub, made["id"])
        assert kept is not None
        assert (kept.spec.cordoned, kept.spec.zone) == (cordoned, "boston")
        assert kept.spec.kubeconfig == kubeconfig()


@together
async def test_a_hub_does_not_change_where_its_orders_are(operator: As) -> None:
    made = await operator(HUBS, "Create", object=BY_KIND["Hub"].fresh())

    failed = await operator.refused(
        HUBS, "Update", object={"id": made["id"]}, update_mask="spec.kubeconfig"
    )

    assert "spec.kubeconfig" in failed.violations


# --- strangers ---------------------------------------------------------------------------------


@together
async def test_tenants_learn_not_even_which_hubs_there_are(
    environment: ApiEnvironment, operator: As
) -> None:
    hub = await operator(HUBS, "Create", object=BY_KIND["Hub"].fresh())
    member = As(environment, operator._door, "member")
    for service, rpc, field in (
        (VERBS, "Check", "hub"),
        (VERBS, "Prepare", "hub"),
        (HUBS, "Get", "id"),
    ):
        answers = set()
        for key in (hub["id"], hub["metadata"]["name"], "no-such-hub"):
            failed = await member.refused(service, rpc, **{field: key})
            answers.add((failed.code, failed.message))
        assert len(answers) == 1
        assert {code for code, _ in answers} == {"PERMISSION_DENIED"}


def test_no_package_of_tenants_has_hubs() -> None:
    assert f"{PUBLIC}.Hubs" not in wire.services()
    assert "hub" not in {
        field.name for field in wire.message(f"{PUBLIC}.ClusterStatus").DESCRIPTOR.fields
    }
