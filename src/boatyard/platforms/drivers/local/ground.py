"""What a control plane stands on beside its processes. Simulated nodes need nothing; real ones a network."""

from __future__ import annotations


class Ground:
    """Does nothing; real nodes do."""

    @property
    def moving(self) -> str:
        """What is still on its way to the control plane's version, in words. Empty: nothing."""
        return ""

    async def prepare(self) -> None:
        """Before anything is started."""

    async def freeze(self, *, frozen: bool) -> None:
        """Nodes stand still with their control plane."""

    async def stop(self) -> None:
        """Before the control plane is stopped: nothing of the nodes runs afterwards."""

    async def leave(self) -> None:
        """Once nothing of the control plane runs: nothing is left afterwards but files."""
