"""Returns the forms of templates as JSON Schema, and publishes roles. Called by the gRPC and REST servers."""

from __future__ import annotations

import json
from collections.abc import Mapping

from google.api import httpbody_pb2
from google.protobuf.message import Message

from boatyard.api import policy
from boatyard.api.answers import Answers
from boatyard.api.crud import (
    Call,
    Crud,
    can_see,
    check_id,
    make_not_found,
    refuse_unsupported_dry_run,
)
from boatyard.api.kinds import BOATYARD_V1, KINDS
from boatyard.api.permissions import Verb
from boatyard.api.requests import PublishRequest, TemplateRequest
from boatyard.model import wire
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated import convert
from boatyard.model.generated.osac import ClusterTemplate
from boatyard.resources.cluster_templates.publisher import PUBLISHED_ORIGIN, TemplatePublisher
from boatyard.resources.metadata import quote_text
from boatyard.roles.content import RoleFileContent, path_problem, size_problem
from boatyard.roles.form import NO_FORM, form_from_json
from boatyard.roles.schema import CONTENT_TYPE, form_schema

_TEMPLATE_KIND = KINDS["ClusterTemplate"]
LONGEST_ROLE_NAME = 128


class TemplatesService:
    """Implements the service `boatyard.v1.Templates`."""

    def __init__(self, crud: Crud) -> None:
        self._crud = crud
        self._offering = TemplatePublisher(crud.ledger)

    def answers(self) -> Mapping[str, Answers]:
        answers = Answers(unary={"GetSchema": self.get_schema, "Publish": self.publish})
        return {f"{BOATYARD_V1}.Templates": answers}

    async def get_schema(self, request: TemplateRequest, call: Call) -> Message:
        policy.check(call.caller, Verb.GET, "ClusterTemplate", private=False)
        template = await self._find_template(request.template, call)
        form = form_from_json(template.form) if template.form else NO_FORM
        text = json.dumps(form_schema(form, title=template.title), ensure_ascii=True)
        return httpbody_pb2.HttpBody(content_type=CONTENT_TYPE, data=text.encode())

    async def publish(self, request: PublishRequest, call: Call) -> Message:
        """Stores and checks a role and offers it as a template. One with mistakes is not offered; they are returned."""
        policy.check(call.caller, Verb.PUBLISH, "ClusterTemplate", private=True)
        refuse_unsupported_dry_run(call)
        files = _parse_files(request)
        source = await self._offering.publish(request.role, files, origin=PUBLISHED_ORIGIN)
        self._crud.catalogue.invalidate_kind("ClusterTemplate")
        message = convert.TO_MESSAGE[f"{BOATYARD_V1}.TemplateSource"](source)
        return wire.message(f"{BOATYARD_V1}.TemplatesPublishResponse")(object=message)

    async def _find_template(self, key: str, call: Call) -> ClusterTemplate:
        """Finds the template by id or name. NotFound when it does not exist or the caller may not see it."""
        check_id(key)
        ledger, caller = self._crud.ledger, call.caller
        template = await ledger.documents.get(ClusterTemplate, key, sealed=True)
        if template is not None and can_see(caller, template):
            return template
        candidates = await ledger.documents.find(
            ClusterTemplate, name=key, tenants=caller.visible_tenants, sealed=True
        )
        if len(candidates) > 1:
            raise Refused(
                "", Violation("template", f"{quote_text(key)} is ambiguous", "give the id")
            )
        if not candidates:
            raise make_not_found(_TEMPLATE_KIND, key)
        return candidates[0]


def _parse_files(request: PublishRequest) -> dict[str, RoleFileContent]:
    violations = []
    if not request.role or len(request.role) > LONGEST_ROLE_NAME or path_problem(request.role):
        violations.append(
            Violation("role", f"{quote_text(request.role)} is not the name of a folder")
        )
    elif "/" in request.role:
        violations.append(Violation("role", f"{quote_text(request.role)} is not one folder"))
    files: dict[str, RoleFileContent] = {}
    for index, file in enumerate(request.files):
        problem = path_problem(file.path)
        if not problem and file.path in files:
            problem = "is there twice"
        if problem:
            violations.append(Violation(f"files[{index}].path", problem, "give it once, below /"))
        files[file.path] = RoleFileContent(file.content, file.executable)
    problem = size_problem(files)
    if problem:
        violations.append(Violation("files", f"the role {problem}"))
    if violations:
        raise Refused("", *violations)
    return files
