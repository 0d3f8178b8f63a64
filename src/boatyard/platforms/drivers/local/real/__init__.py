"""Real nodes on this machine (`nodes: real`): their requirements, their network segment, and the nodes."""

from boatyard.platforms.drivers.local.real.names import node_name, segment_name
from boatyard.platforms.drivers.local.real.node import Component, RealNode
from boatyard.platforms.drivers.local.real.nodes import (
    after_containerd,
    clean_node,
    components,
    freeze_node,
    prepare_node,
)
from boatyard.platforms.drivers.local.real.requirements import check_all, missing
from boatyard.platforms.drivers.local.real.segment import (
    clean_segment,
    list_nodes,
    list_segments,
    prepare_segment,
)

__all__ = [
    "Component",
    "RealNode",
    "after_containerd",
    "check_all",
    "clean_node",
    "clean_segment",
    "components",
    "freeze_node",
    "list_nodes",
    "list_segments",
    "missing",
    "node_name",
    "prepare_node",
    "prepare_segment",
    "segment_name",
]
