"""Do the cluster's names point at its addresses?"""

from __future__ import annotations

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_names(context: CheckContext) -> Outcome:
    subject = context.subject
    if subject.resolve is None:
        raise Unavailable("no name server can be asked", reason="NoNameServer")
    for name, address in (
        (subject.api_name, subject.api_address),
        (subject.ingress_name, subject.ingress_address),
    ):
        resolved_address = await subject.resolve(name)
        if not resolved_address:
            return Waiting(f"The name {name} is not known.", reason="NameUnknown")
        if resolved_address != address:
            return Waiting(f"The name {name} points somewhere else.", reason="NameWrong")
    return Done()
