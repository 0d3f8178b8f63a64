"""Requests the addresses of the cluster's API and ingress and waits until they are known."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.steps import StepAction


class ActionModule(StepAction):
    step = "addresses"
    told = ("api_address", "ingress_address")
