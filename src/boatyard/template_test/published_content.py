"""Finds the content that is now offered under a role's id. Used by the command when no --from is given."""

from __future__ import annotations

import asyncio
from pathlib import Path

from boatyard.client.client import Client
from boatyard.client.config import find_target
from boatyard.client.kinds import TEMPLATE
from boatyard.client.local_roles import LocalRole, read_roles
from boatyard.model.errors import BoatyardError
from boatyard.roles.role import TemplateRole

_TIMEOUT_SECONDS = 3.0


async def find_published(role: TemplateRole, contents: Path) -> tuple[LocalRole | None, str]:
    """The offered content from this machine's copy; or None and one line that says why there is none."""
    try:
        target = find_target()
        async with asyncio.timeout(_TIMEOUT_SECONDS), Client(target) as client:
            template = (await client.find_one(TEMPLATE, role.metadata.id)).document
    except (BoatyardError, TimeoutError, OSError):
        return None, "there is no older content; name it with --from FOLDER"
    if template.digest == role.digest:
        return None, "the same content is on offer"
    if not template.digest:
        return None, "what is on offer under this id was not made of a role"
    folder = contents / template.digest.removeprefix("sha256:")
    if not folder.is_dir():
        return (
            None,
            f"{template.digest} is on offer, and not kept here; name its folder with --from",
        )
    return read_roles(folder)[0], ""
