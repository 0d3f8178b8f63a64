"""Requests the order's network and waits until its hosts are attached to it."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.steps import StepAction


class ActionModule(StepAction):
    step = "network"
    told = ("nodes", "cidr", "gateway")
