"""Hooks by which a control plane prepares and stops what its nodes need. Simulated nodes need nothing."""

from __future__ import annotations


class NodeHooks:
    """Hooks that do nothing, for simulated nodes. Real nodes override them."""

    @property
    def version_message(self) -> str:
        """A message while nodes do not have the control plane's version yet; empty otherwise."""
        return ""

    async def prepare(self) -> None:
        """Runs before any process is started."""

    async def freeze(self, *, frozen: bool) -> None:
        """Freezes or thaws the nodes together with their control plane."""

    async def stop(self) -> None:
        """Runs before the control plane is stopped. No process of a node runs afterwards."""

    async def clean_up(self) -> None:
        """Runs once the control plane has stopped. Only files are left afterwards."""
