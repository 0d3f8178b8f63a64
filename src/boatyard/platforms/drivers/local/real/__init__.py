"""Real nodes on this machine (`nodes: real`): their requirements, their network segment, and the nodes."""

from boatyard.platforms.drivers.local.real.names import node_name, segment_name
from boatyard.platforms.drivers.local.real.node import NodeProgram, RealNode
from boatyard.platforms.drivers.local.real.nodes import (
    clean_node,
    freeze_node,
    import_images,
    list_programs,
    prepare_node,
)
from boatyard.platforms.drivers.local.real.requirements import check_requirements, list_missing
from boatyard.platforms.drivers.local.real.segment import (
    clean_segment,
    list_nodes,
    list_segments,
    prepare_segment,
)

__all__ = [
    "NodeProgram",
    "RealNode",
    "check_requirements",
    "clean_node",
    "clean_segment",
    "freeze_node",
    "import_images",
    "list_missing",
    "list_nodes",
    "list_programs",
    "list_segments",
    "node_name",
    "prepare_node",
    "prepare_segment",
    "segment_name",
]
