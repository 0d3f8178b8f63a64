"""Does the cluster's API answer, and is it of the version that was asked for?"""

from __future__ import annotations

from boatyard.checks.drivers.kube.asking import Asking
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting


async def ask(asking: Asking) -> Outcome:
    said = await ask_version(asking)
    if isinstance(said, Waiting):
        return said
    wanted = asking.subject.version
    if not fits(wanted, said):
        return Waiting(f"The cluster does not run version {wanted}.", reason="VersionWrong")
    return Done()


async def ask_version(asking: Asking) -> str | Waiting:
    """What an API that is ready says of itself."""
    try:
        await asking.client.text("/readyz")
        said = await asking.client.call("GET", "/version")
    except Unavailable as error:
        return Waiting(_WORDS.get(error.reason, "The API is not ready."), reason="ApiNotAvailable")
    except Refused as error:
        return Waiting("The API does not let us in.", reason=error.reason)
    return str(said.get("gitVersion") or "")


_WORDS = {
    "Unreachable": "The API does not answer.",
    "Timeout": "The API does not answer in time.",
    "Cut": "The API does not answer.",
    "CertificateNotTrusted": "The certificate of the API is not trusted.",
}


def fits(wanted: str, served: str) -> bool:
    """Whether "v1.36.3+more" is what "1.36.3" or "1.36" asks for."""
    numbers = served.removeprefix("v")
    if numbers == wanted.removeprefix("v"):
        return True
    plain = numbers.partition("+")[0].partition("-")[0].split(".")
    asked = wanted.removeprefix("v").split(".")
    return bool(wanted) and plain[: len(asked)] == asked
