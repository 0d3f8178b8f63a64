"""Requests the order's hosts and waits until it has them."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.steps import StepAction


class ActionModule(StepAction):
    step = "hosts"
    told = ("nodes",)
