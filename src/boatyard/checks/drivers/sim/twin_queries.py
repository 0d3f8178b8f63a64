"""The arguments of a check: a way to query the twin, and the cluster's facts there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

QueryTwin = Callable[..., Awaitable[Any]]
ClusterFacts = Mapping[str, Any]
