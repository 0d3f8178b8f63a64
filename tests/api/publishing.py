"""Roles sent to a server of this suite, and orders of what they offer."""

from __future__ import annotations

import base64
from typing import Any

from boatyard.roles.content import Files
from tests.api.doors import OURS, PUBLIC
from tests.api.roles import As
from tests.support.roles import files

TEMPLATES, SOURCES = f"{OURS}.Templates", f"{OURS}.TemplateSources"
CLUSTERS = f"{PUBLIC}.Clusters"
TYPE = "type.googleapis.com/google.protobuf."
SECRET = "hunter2-hunter2"


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
