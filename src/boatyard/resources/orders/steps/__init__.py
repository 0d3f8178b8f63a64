"""Table of contents: the functions that ensure and release each kind of item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Outcome
from boatyard.resources.orders.steps import (
    addresses,
    hosts,
    install,
    names,
    network,
    role,
    validate,
)
from boatyard.resources.orders.steps.context import StepContext

ItemAction = Callable[[StepContext, Item], Awaitable[Outcome]]

ENSURE_ACTIONS: Mapping[str, ItemAction] = {
    "host": hosts.ensure_host,
    "l2": network.ensure_l2,
    "port": network.ensure_port,
    "agent": network.ensure_agent,
    "l3": network.ensure_l3,
    "binding": network.ensure_binding,
    "api-address": addresses.ensure_address,
    "ingress-address": addresses.ensure_address,
    "api-name": names.ensure_name,
    "ingress-name": names.ensure_name,
    "cluster": install.ensure_cluster,
    "node": install.ensure_node,
    "check": validate.ensure_check,
    "backup": install.ensure_backup,
    "role": role.ensure_run,
    "pre_install": role.ensure_run,
    "post_install": role.ensure_run,
    "scale": role.ensure_run,
    "acceptance": role.ensure_run,
    "farewell": role.ensure_run,
}

RELEASE_ACTIONS: Mapping[str, ItemAction] = {
    "host": hosts.release_host,
    "l2": network.release_l2,
    "port": network.release_port,
    "agent": network.release_agent,
    "l3": network.release_l3,
    "binding": network.release_binding,
    "api-address": addresses.release_address,
    "ingress-address": addresses.release_address,
    "api-name": names.release_name,
    "ingress-name": names.release_name,
    "cluster": install.release_cluster,
    "node": install.release_node,
    "check": validate.release_check,
    "backup": install.release_backup,
    "role": role.release_run,
    "pre_install": role.release_run,
    "post_install": role.release_run,
    "scale": role.release_run,
    "acceptance": role.release_run,
    "farewell": role.run_delete_hook,
}
