"""Checks of a real cluster through its own API: one per file, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boatyard.checks.drivers.kube import api, certificates, components, names, nodes, workload
from boatyard.checks.drivers.kube.check_context import CheckContext, CheckFunction, CheckSettings
from boatyard.checks.port import Subject
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.credentials import Now, wall_clock
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome, Waiting

CHECKS: dict[str, CheckFunction] = {
    "names": names.check_names,
    "api": api.check_api,
    "certificates": certificates.check_certificates,
    "components": components.check_components,
    "nodes": nodes.check_nodes,
    "workload": workload.check_workload,
}
# A check has a few seconds; a request that takes longer is made again later.
_REQUEST_SECONDS, _RETRY_SECONDS = 3.0, 4.0


class KubeChecks:
    """Checks the cluster as its administrator, with the kubeconfig in the subject."""

    needs_kubeconfig = True
    checks: Mapping[str, CheckFunction] = CHECKS

    def __init__(self, settings: CheckSettings | None = None, *, now: Now = wall_clock) -> None:
        self._settings = settings or CheckSettings()
        self._now = now

    def list_names(self) -> Sequence[str]:
        return tuple(self.checks)

    async def check_ready(self) -> None:
        return None  # a check needs nothing but the cluster itself

    async def run_check(self, name: str, subject: Subject) -> Outcome:
        if name not in self.checks:
            raise Refused(f"no question {name!r}; there are {', '.join(self.checks)}")
        if not subject.kubeconfig:
            raise Unavailable("the cluster cannot be asked without a kubeconfig", reason="NoAccess")
        try:
            config = read_kubeconfig(subject.kubeconfig)
        except Refused as error:
            # The tenant cannot fix that, so it is not Refused; the platform may hand out a better one later.
            raise Unavailable(f"the cluster's kubeconfig is not good: {error}") from error
        if config.plugin or config.token_file or config.certificate_file or config.ca_file:
            # It comes from outside: it must not make us run a program or send a file of ours to a stranger.
            raise Unavailable(
                "the cluster's kubeconfig points at programs or files of this machine"
            )
        client = KubeClient(
            config, manager="boatyard-check", timeout=_REQUEST_SECONDS, patience=_RETRY_SECONDS
        )
        try:
            return await self.checks[name](
                CheckContext(client, subject, self._settings, self._now())
            )
        except Refused as error:
            return Waiting(f"The cluster refuses the question: {error}", reason="AskingRefused")
        finally:
            await client.close()

    async def close(self) -> None:
        return None
