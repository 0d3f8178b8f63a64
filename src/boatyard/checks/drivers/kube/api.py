"""Does the cluster's API answer, and is it of the version that was asked for?"""

from __future__ import annotations

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_api(context: CheckContext) -> Outcome:
    served = await read_version(context)
    if isinstance(served, Waiting):
        return served
    version = context.subject.version
    if not matches_version(version, served):
        return Waiting(f"The cluster does not run version {version}.", reason="VersionWrong")
    return Done()


async def read_version(context: CheckContext) -> str | Waiting:
    """The version that the API reports, or Waiting while the API is not ready."""
    try:
        await context.client.get_text("/readyz")
        response = await context.client.call("GET", "/version")
    except Unavailable as error:
        return Waiting(
            _MESSAGES.get(error.reason, "The API is not ready."), reason="ApiNotAvailable"
        )
    except Refused as error:
        return Waiting("The API does not let us in.", reason=error.reason)
    return str(response.get("gitVersion") or "")


_MESSAGES = {
    "Unreachable": "The API does not answer.",
    "Timeout": "The API does not answer in time.",
    "Cut": "The API does not answer.",
    "CertificateNotTrusted": "The certificate of the API is not trusted.",
}


def matches_version(requested: str, served: str) -> bool:
    """Whether "v1.36.3+more" is what "1.36.3" or "1.36" asks for."""
    numbers = served.removeprefix("v")
    if numbers == requested.removeprefix("v"):
        return True
    served_parts = numbers.partition("+")[0].partition("-")[0].split(".")
    requested_parts = requested.removeprefix("v").split(".")
    return bool(requested) and served_parts[: len(requested_parts)] == requested_parts
