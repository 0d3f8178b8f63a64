"""The client of a twin in another process. Used by sim drivers."""

from __future__ import annotations

from boatyard.processes.calling import SocketCaller


class TwinClient(SocketCaller):
    what = "the twin"
