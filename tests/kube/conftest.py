"""One real API server for all tests here, without controllers; each test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import NAMESPACES, SERVICE_ACCOUNTS
from tests.kube.checking import things_left, until
from tests.support.control_plane import Authority, ControlPlane, control_plane
from tests.support.kube_hub.fake_hypershift import hypershift_hub
from tests.support.kube_hub.hypershift_tenant import (  # noqa: F401 - fixtures
    kubectl,
    played_hub,
    player,
    shared_player,
    tenant,
)

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    client = KubeClient(read_kubeconfig(plane.kubeconfig()), timeout=30)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def hosting_plane() -> Iterator[ControlPlane]:
    """Another one with HyperShift's kinds, where tests play HyperShift themselves."""
    with hypershift_hub() as plane:
        yield plane


@pytest.fixture
async def hosting(hosting_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    client = KubeClient(read_kubeconfig(hosting_plane.kubeconfig()), timeout=30)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def whole() -> Iterator[ControlPlane]:
    """Another one with all its parts, and with bad certificates for whoever asks for their names."""

    def planted(plane: ControlPlane) -> list[str]:
        def issue(name: str, authority: Authority = plane.ca, **times: float) -> str:
            return plane.sni(name, *authority.issue("api", names=[name], **times))

        return [
            issue("expired.example", days=-0.5),
            issue("soon.example", days=3),
            issue("not-yet.example", began=-1),
            issue("theirs.example", Authority("theirs")),
        ]

    with control_plane(api_flags=planted) as plane:
        plane.start_controller_manager("--node-monitor-grace-period=1h")
        plane.start_scheduler()
        yield plane


@pytest.fixture
async def admin(whole: ControlPlane) -> AsyncIterator[KubeClient]:
    """Its administrator, once it lets pods in."""
    admin = KubeClient(read_kubeconfig(whole.kubeconfig()), timeout=30)

    async def has_account() -> bool:
        accounts = await admin.list(SERVICE_ACCOUNTS, fields="metadata.name=default")
        return {"default", "kube-system"} <= {
            one["metadata"]["namespace"] for one in accounts.items
        }

    await until(has_account)
    yield admin
    await admin.close()


@pytest.fixture
async def leaves_nothing(admin: KubeClient) -> AsyncIterator[None]:
    """Of the checks' own at the end of the test, without waiting for it."""
    yield
    assert await things_left(admin) == []


@pytest.fixture
async def namespace(client: KubeClient) -> str:
    name = f"test-{next(_NUMBERS)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    # What a controller-manager would make.
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, name)
    return name
