"""One hub and one real ansible-rulebook for all tests here; each test has a site of its own on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place
from tests.support.kube_hub.eda_environment import (
    TOKEN,
    EdaEnvironment,
    automation_token,
    eda_environment,
    eda_hub,
)
from tests.support.kube_hub.rulebook import Rulebook, needs_rulebook, rulebook


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    needs_rulebook()
    with eda_hub() as plane:
        yield plane


@pytest.fixture(scope="session")
def account(plane: ControlPlane) -> tuple[str, str]:
    """The namespace of the account that the playbooks have, under the shipped rights, and its token."""

    async def ask() -> tuple[str, str]:
        client = admin(plane)
        try:
            _, system = await new_place(client)
            return system, await automation_token(plane, client, system)
        finally:
            await hang_up(client)

    return asyncio.run(ask())


@pytest.fixture(scope="session")
def environ(plane: ControlPlane, account: tuple[str, str]) -> dict[str, str]:
    """How the playbooks know the hub, and as whom."""
    authority = plane.folder / "hub-ca.crt"
    authority.write_bytes(plane.ca.pem)
    server = plane.kubeconfig()["clusters"][0]["cluster"]["server"]
    return {
        "K8S_AUTH_HOST": str(server),
        "K8S_AUTH_API_KEY": account[1],
        "K8S_AUTH_SSL_CA_CERT": str(authority),
        "BOATYARD_LOCK_SECONDS": "5",
    }


@pytest.fixture(scope="session")
def book(environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rulebook]:
    folder: Path = tmp_path_factory.mktemp("rulebook")
    with rulebook(folder, environ, TOKEN) as running:
        yield running


@pytest.fixture
async def environment(plane: ControlPlane, book: Rulebook) -> AsyncIterator[EdaEnvironment]:
    async with eda_environment(plane, book.url, TOKEN) as environment:
        yield environment
