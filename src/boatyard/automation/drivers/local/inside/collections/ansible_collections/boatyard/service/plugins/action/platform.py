"""Asks for the cluster itself, waits until it is there, and leaves its kubeconfig in the run's own files."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.steps import (
    KUBECONFIG,
    StepAction,
    write_kubeconfig,
)


class ActionModule(StepAction):
    step = "platform"
    told = ("nodes", "api_url", "simulated")

    def facts(self, asking, run):
        found = super().facts(asking, run)
        text = asking.look(kubeconfig=True).get(KUBECONFIG, "") if run.get("has_kubeconfig") else ""
        if not text:
            return {**found, KUBECONFIG: ""}
        path = write_kubeconfig(text)
        known = {"boatyard_kubeconfig": path, "boatyard_simulated": found["simulated"]}
        return {**found, KUBECONFIG: path, "ansible_facts": known}
