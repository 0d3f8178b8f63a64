"""One role at one door, for suites that tell several people apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door, Failed
from tests.api.samples import SAMPLES

CLUSTERS = f"{PUBLIC}.Clusters"
BY_KIND = {sample.kind: sample for sample in SAMPLES}


class As:
    """One role at one door."""

    def __init__(
        self, environment: ApiEnvironment, door: Door, role: str, tenant: str = "acme"
    ) -> None:
        self._door = door
        self._token = environment.token(role, tenant)

    async def __call__(self, service: str, rpc: str, **body: Any) -> Any:
        return await self._door.call(service, rpc, body, token=self._token)

    async def cluster(self, **spec: Any) -> Any:
        made = BY_KIND["Cluster"].fresh()
        del made["metadata"]["tenant"]
        made["spec"] |= spec
        return await self(CLUSTERS, "Create", object=made)

    async def refused(self, service: str, rpc: str, **body: Any) -> Failed:
        with pytest.raises(Failed) as failed:
            await self(service, rpc, **body)
        return failed.value


async def finish(operator: As, id: str) -> None:
    """What the worker does at the end: the finalizer goes."""
    await operator(CLUSTERS, "Delete", id=id)
    await operator(
        f"{PRIVATE}.Clusters",
        "Update",
        object={"id": id, "metadata": {"finalizers": []}},
        update_mask="metadata.finalizers",
    )
