"""The parent's side of worker processes: starts them, sends them their targets, notices their deaths."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

from boatyard.model.errors import Unavailable
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.worker import WorkerSpec, main

_ANSWER_SECONDS = 30.0
_context: ForkServerContext | None = None


def get_fork_server() -> ForkServerContext:
    """The server that has imported all a worker needs and forks workers. Started once."""
    global _context
    if _context is None:
        _context = multiprocessing.get_context("forkserver")
        _context.set_forkserver_preload(["boatyard.proof.worker"])
    return _context


class ProofWorker:
    """One worker process. Created by `start`."""

    def __init__(self, process: BaseProcess, channel: Any) -> None:
        self._process = process
        self._channel = channel
        self._messages: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.last_point = ""  # the point at which it was about to send itself a signal
        self.reached = asyncio.Event()

    @classmethod
    async def start(cls, spec: WorkerSpec) -> ProofWorker:
        context = get_fork_server()
        parent_end, worker_end = context.Pipe()
        process = context.Process(target=main, args=(spec, worker_end), daemon=True)
        process.start()
        worker_end.close()
        worker = cls(process, parent_end)
        asyncio.get_running_loop().add_reader(parent_end.fileno(), worker._on_message)
        await worker._receive("ready")
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    async def set_target(
        self, target: KillPoint | None, signal_number: int = signal.SIGKILL
    ) -> None:
        """Makes it count the points it passes from now on; at the target it sends itself the signal."""
        label, occurrence = (target.label, target.occurrence) if target else ("", 0)
        self._send("begin", label, occurrence, int(signal_number))
        await self._receive("begun")

    async def clear_target(self) -> bool:
        """Removes its target. False when it has already died."""
        try:
            await self.set_target(None)
        except Unavailable:
            await self.ended.wait()
            return False
        return True

    async def list_passed(self) -> list[KillPoint]:
        """The points it has passed since the last `begin`."""
        self._send("passed")
        _, rows = await self._receive("passed")
        return [KillPoint(label, occurrence) for label, occurrence in rows]

    async def stop(self) -> None:
        """Lets it finish its passes and end; kills it after 30 seconds. Content when it has already ended."""
        if not self.ended.is_set():
            self._send("stop")
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self.ended.wait()
            except TimeoutError:
                self.kill()
                await self.ended.wait()
        self._process.join()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)

    def signal(self, signal_number: int) -> None:
        if not self.ended.is_set():
            os.kill(self.pid, signal_number)

    def _send(self, *message: Any) -> None:
        # A worker that has just died shows by not answering.
        with contextlib.suppress(OSError):
            self._channel.send(message)

    async def _receive(self, expected: str) -> tuple[Any, ...]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                message = await self._messages.get()
        except TimeoutError as error:
            raise Unavailable("a worker of the proof does not answer") from error
        if message[0] != expected:
            raise Unavailable(
                f"a worker of the proof died before it said {expected!r}; see its log"
            )
        return message

    def _on_message(self) -> None:
        try:
            message = self._channel.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()
            self._messages.put_nowait(("gone",))
            self.ended.set()
            return
        if message[0] == "at":
            self.last_point = message[1]
            self.reached.set()
            return
        self._messages.put_nowait(message)
