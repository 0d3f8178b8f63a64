"""The twin seen from another process. For sim drivers."""

from __future__ import annotations

from boatyard.processes.calling import SocketCaller


class TwinClient(SocketCaller):
    what = "the twin"
