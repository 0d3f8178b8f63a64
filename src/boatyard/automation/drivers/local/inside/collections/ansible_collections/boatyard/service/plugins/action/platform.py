"""Requests the cluster itself, waits until it is ready, and writes its kubeconfig to the run's own files."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.steps import (
    KUBECONFIG,
    StepAction,
    write_kubeconfig,
)


class ActionModule(StepAction):
    step = "platform"
    told = ("nodes", "api_url", "simulated")

    def facts(self, requests, run):
        facts = super().facts(requests, run)
        text = (
            requests.look(kubeconfig=True).get(KUBECONFIG, "") if run.get("has_kubeconfig") else ""
        )
        if not text:
            return {**facts, KUBECONFIG: ""}
        path = write_kubeconfig(text)
        ansible_facts = {"boatyard_kubeconfig": path, "boatyard_simulated": facts["simulated"]}
        return {**facts, KUBECONFIG: path, "ansible_facts": ansible_facts}
