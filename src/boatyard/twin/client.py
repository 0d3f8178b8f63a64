"""The client of a twin in another process. Used by sim drivers."""

from __future__ import annotations

from boatyard.processes.socket_client import SocketClient


class TwinClient(SocketClient):
    peer_name = "the twin"
