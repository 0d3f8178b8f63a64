"""`hub check` of a hub whose clusters are made by playbooks: what those lack is named, with the file that mends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from boatyard.kube.kinds import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, SECRETS
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import PASSED, WARNED
from boatyard.resources.hubs.check.requirements import EDA_FILE
from boatyard.resources.hubs.preparation import prepare_hub
from tests.kube.test_hub_check import Plant, checked, no_looking_allowed
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kube_hub.equipped_hub import (
    AUTOMATION,
    AUTOMATION_RULES,
    EDA,
    OPERATOR,
    OPERATOR_RULES_EDA,
    SYSTEM,
    EquippedHub,
    open_equipped_hub,
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
async def equipped_hub(plane: ControlPlane) -> AsyncIterator[EquippedHub]:
    async with open_equipped_hub(plane) as equipped_hub:
        await equipped_hub.complete()
        hub = equipped_hub.hub()
        await prepare_hub(await equipped_hub.clients.client(hub), hub, equipped_hub.access.crds)
        yield equipped_hub


@pytest.fixture
async def automated(equipped_hub: EquippedHub) -> AsyncIterator[Hub]:
    """A hub that has all that they need, too."""
    await equipped_hub.grant(OPERATOR, EDA, OPERATOR_RULES_EDA, at_home=True)
    await equipped_hub.grant(AUTOMATION, AUTOMATION, AUTOMATION_RULES)
    await equipped_hub.apply(SECRETS, {"metadata": {"name": "eda-token", "namespace": SYSTEM}})
    settings = {"hosted.platform": "Agent", "eda.secret": "eda-token"}
    yield equipped_hub.hub(drivers={"platform": "hosted", "automation": "eda"}, settings=settings)
    await equipped_hub.admin.delete(ROLE_BINDINGS, EDA, SYSTEM)
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, AUTOMATION)
    await equipped_hub.admin.delete(SECRETS, "eda-token", SYSTEM)


async def test_a_hub_whose_playbooks_have_everything(
    equipped_hub: EquippedHub, automated: Hub
) -> None:
    found = await checked(equipped_hub, automated)

    for name in ("operator's rights", "automation's rights", "automation's secret"):
        assert found[name].result == PASSED, found[name]
    without = await checked(equipped_hub)
    assert not [name for name in without if name.startswith("automation")]


async def playbooks_not_bound(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, AUTOMATION)


async def operator_not_bound_for_playbooks(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(ROLE_BINDINGS, EDA, SYSTEM)


async def no_token_for_playbooks(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(SECRETS, "eda-token", SYSTEM)


@pytest.mark.parametrize(
    "plant, name, words, remedy",
    [
        pytest.param(playbooks_not_bound, "automation's rights", "create leases", EDA_FILE),
        pytest.param(
            operator_not_bound_for_playbooks, "operator's rights", "list secrets", EDA_FILE
        ),
        pytest.param(
            no_token_for_playbooks, "automation's secret", "no Secret eda-token", "create it"
        ),
        pytest.param(no_looking_allowed, "automation's rights", "may not ask", AUTOMATION),
    ],
)
async def test_what_playbooks_lack_is_named(
    equipped_hub: EquippedHub, automated: Hub, plant: Plant, name: str, words: str, remedy: str
) -> None:
    await plant(equipped_hub)

    found = (await checked(equipped_hub, automated))[name]

    assert (found.result, words in found.message) == (WARNED, True), found
    assert remedy in found.remedy
