"""Returns the forms of templates as JSON Schema, and publishes roles. Called by the gRPC and REST servers."""

from __future__ import annotations

import json
from typing import Any

from google.api import httpbody_pb2
from google.protobuf.message import Message

from boatyard.api import policy
from boatyard.api.crud import Call, Crud, check_id, check_wet, missing, sees
from boatyard.api.kinds import KINDS, OURS
from boatyard.api.policy import Verb
from boatyard.model import wire
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated import convert
from boatyard.model.generated.osac import ClusterTemplate
from boatyard.resources.cluster_templates.offering import PUBLISHED, Offering
from boatyard.resources.metadata import shown
from boatyard.roles.content import RoleFile, path_problem, size_problem
from boatyard.roles.form import NO_FORM, from_text
from boatyard.roles.schema import CONTENT_TYPE, form_schema

_TEMPLATE = KINDS["ClusterTemplate"]
LONGEST_ROLE = 128


class Templates:
    """Implements the service `boatyard.v1.Templates`."""

    def __init__(self, crud: Crud) -> None:
        self._crud = crud
        self._offering = Offering(crud.ledger)

    async def schema(self, request: Any, call: Call) -> Message:
        policy.check(call.caller, Verb.GET, "ClusterTemplate", private=False)
        template = await self._find(request.template, call)
        form = from_text(template.form) if template.form else NO_FORM
        text = json.dumps(form_schema(form, title=template.title), ensure_ascii=True)
        return httpbody_pb2.HttpBody(content_type=CONTENT_TYPE, data=text.encode())

    async def publish(self, request: Any, call: Call) -> Message:
        """Stores and checks a role and offers it as a template. One with mistakes is not offered; they are returned."""
        policy.check(call.caller, Verb.PUBLISH, "ClusterTemplate", private=True)
        check_wet(call)
        files = _files(request)
        source = await self._offering.offer(request.role, files, origin=PUBLISHED)
        self._crud.catalogue.forget("ClusterTemplate")
        message = convert.TO_MESSAGE[f"{OURS}.TemplateSource"](source)
        return wire.message(f"{OURS}.TemplatesPublishResponse")(object=message)

    async def _find(self, key: str, call: Call) -> ClusterTemplate:
        """Finds the template by id or name. NotFound when it does not exist or the caller may not see it."""
        check_id(key)
        ledger, caller = self._crud.ledger, call.caller
        template = await ledger.documents.get(ClusterTemplate, key, sealed=True)
        if template is not None and sees(caller, template):
            return template
        candidates = await ledger.documents.find(
            ClusterTemplate, name=key, tenants=caller.visible_tenants, sealed=True
        )
        if len(candidates) > 1:
            raise Refused("", Violation("template", f"{shown(key)} is ambiguous", "give the id"))
        if not candidates:
            raise missing(_TEMPLATE, key)
        return candidates[0]


def _files(request: Any) -> dict[str, RoleFile]:
    violations = []
    if not request.role or len(request.role) > LONGEST_ROLE or path_problem(request.role):
        violations.append(Violation("role", f"{shown(request.role)} is not the name of a folder"))
    elif "/" in request.role:
        violations.append(Violation("role", f"{shown(request.role)} is not one folder"))
    files: dict[str, RoleFile] = {}
    for index, file in enumerate(request.files):
        problem = path_problem(file.path)
        if not problem and file.path in files:
            problem = "is there twice"
        if problem:
            violations.append(Violation(f"files[{index}].path", problem, "give it once, below /"))
        files[file.path] = RoleFile(file.content, file.executable)
    problem = size_problem(files)
    if problem:
        violations.append(Violation("files", f"the role {problem}"))
    if violations:
        raise Refused("", *violations)
    return files
