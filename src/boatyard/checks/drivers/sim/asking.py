"""What a question is given to look with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

AskTwin = Callable[..., Awaitable[Any]]
ClusterFacts = Mapping[str, Any]
