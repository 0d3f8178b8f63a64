"""`hub check` of a hub whose clusters are made by playbooks: what those lack is named, with the file that mends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from boatyard.kube.kinds import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, SECRETS
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import PASSED, WARNED
from boatyard.resources.hubs.check.requirements import EDA_FILE
from boatyard.resources.hubs.preparing import prepare
from tests.kube.test_hub_check import Plant, checked, no_looking_allowed
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.hub_lab import (
    AUTOMATION,
    AUTOMATION_RULES,
    EDA,
    OPERATOR,
    OPERATOR_RULES_EDA,
    SYSTEM,
    HubLab,
    hub_lab,
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
async def lab(plane: ControlPlane) -> AsyncIterator[HubLab]:
    async with hub_lab(plane) as lab:
        await lab.complete()
        hub = lab.hub()
        await prepare(await lab.clients.client(hub), hub, lab.access.crds)
        yield lab


@pytest.fixture
async def automated(lab: HubLab) -> AsyncIterator[Hub]:
    """A hub that has all that they need, too."""
    await lab.grant(OPERATOR, EDA, OPERATOR_RULES_EDA, at_home=True)
    await lab.grant(AUTOMATION, AUTOMATION, AUTOMATION_RULES)
    await lab.apply(SECRETS, {"metadata": {"name": "eda-token", "namespace": SYSTEM}})
    settings = {"hosted.platform": "Agent", "eda.secret": "eda-token"}
    yield lab.hub(drivers={"platform": "hosted", "automation": "eda"}, settings=settings)
    await lab.admin.delete(ROLE_BINDINGS, EDA, SYSTEM)
    await lab.admin.delete(CLUSTER_ROLE_BINDINGS, AUTOMATION)
    await lab.admin.delete(SECRETS, "eda-token", SYSTEM)


async def test_a_hub_whose_playbooks_have_everything(lab: HubLab, automated: Hub) -> None:
    found = await checked(lab, automated)

    for name in ("operator's rights", "automation's rights", "automation's secret"):
        assert found[name].result == PASSED, found[name]
    without = await checked(lab)
    assert not [name for name in without if name.startswith("automation")]


async def playbooks_not_bound(lab: HubLab) -> None:
    await lab.admin.delete(CLUSTER_ROLE_BINDINGS, AUTOMATION)


async def operator_not_bound_for_playbooks(lab: HubLab) -> None:
    await lab.admin.delete(ROLE_BINDINGS, EDA, SYSTEM)


async def no_token_for_playbooks(lab: HubLab) -> None:
    await lab.admin.delete(SECRETS, "eda-token", SYSTEM)


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
    lab: HubLab, automated: Hub, plant: Plant, name: str, words: str, remedy: str
) -> None:
    await plant(lab)

    found = (await checked(lab, automated))[name]

    assert (found.result, words in found.message) == (WARNED, True), found
    assert remedy in found.remedy
