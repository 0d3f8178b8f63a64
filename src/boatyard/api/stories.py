"""The logs of the runs of a cluster's template. Called by the gRPC and REST servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from google.protobuf.message import Message

from boatyard.api import policy
from boatyard.api.crud import Call, Crud
from boatyard.api.kinds import OURS
from boatyard.api.orders import Orders
from boatyard.api.policy import Verb
from boatyard.api.watch import Part, Watches
from boatyard.ledger.stories import MOST_LINES, StoryLine, Told
from boatyard.model import wire
from boatyard.model.caller import Caller
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.boatyard import Explanation, StepState
from boatyard.resources.metadata import shown
from boatyard.resources.orders.road import ROLE_STEPS

PAGE = 500  # lines that are read at once for a watch
LOOK_SECONDS = 5.0  # how long a lost wake-up can go unnoticed
LONGEST_RUN = 128
_STEADY = ("READY", "DEGRADED", "HIBERNATED", "FAILED", "DELETE_FAILED")
_AT_WORK = (StepState.RUNNING, StepState.WAITING, StepState.RELEASING)

_READ = wire.message(f"{OURS}.StoriesReadResponse")
_WATCH = wire.message(f"{OURS}.StoriesWatchResponse")


class Stories:
    """Implements the service `boatyard.v1.Stories` for everybody who may see the cluster, also after its deletion."""

    def __init__(self, crud: Crud, watches: Watches, orders: Orders) -> None:
        self._ledger = crud.ledger
        self._watches = watches
        self._orders = orders

    async def read(self, request: Any, call: Call) -> Message:
        policy.check(call.caller, Verb.STORY, "Cluster", private=False)
        after, limit = _after(request), _limit(request)
        _check_run(request.run)
        cluster, _deleted = await self._orders.find_ever(request.cluster, call.caller)
        page = await self._told(cluster.id, after, request.run, limit)
        items = [_fields(line, call.caller) for line in page.lines]
        return _READ(items=items, missing=page.missing)

    async def watch(
        self, request: Any, call: Call, on_start: Callable[[str], Awaitable[None]]
    ) -> AsyncIterator[Part]:
        """Streams every stored line; with `follow` also new lines, until no more can come.

        Lines are stored before the order's status changes: once the order was seen at rest, the lines
        read after that are all there are.
        """
        policy.check(call.caller, Verb.STORY, "Cluster", private=False)
        after = _after(request)
        _check_run(request.run)
        watcher = await self._watches.follow(None, None)
        try:
            cluster, deleted = await self._orders.find_ever(request.cluster, call.caller)
            await on_start("")
            while True:
                explanation = await self._orders.explanation(cluster, call.caller, deleted=deleted)
                is_complete = not request.follow or is_over(explanation)
                while True:
                    page = await self._told(cluster.id, after, request.run, PAGE)
                    if page.missing:
                        yield _missing(page.missing)
                    for line in page.lines:
                        yield _part(line, call.caller)
                    if len(page.lines) < PAGE:
                        after = page.last_seq
                        break
                    after = page.lines[-1].seq
                if is_complete:
                    return
                while entries := await watcher.entries(LOOK_SECONDS):
                    if any(
                        entry.row.id == cluster.id and entry.row.kind in ("Cluster", "Order")
                        for entry in entries
                    ):
                        break
                cluster, deleted = await self._orders.again(cluster)
        finally:
            self._watches.leave(watcher)

    async def _told(self, order_id: str, after: int, run: str, limit: int) -> Told:
        page = await self._ledger.stories.read(order_id, after=after, run=run, limit=limit)
        if after > page.last_seq:
            remedy = "leave it out to read from the beginning"
            raise Refused("", Violation("after", f"there is no line {after} yet", remedy))
        return page


def is_over(explanation: Explanation) -> bool:
    """Whether no more lines can come: the cluster is ready, at rest, stuck or gone, and no run is under way."""
    if explanation.gone:
        return True
    if any(step.name in ROLE_STEPS and step.state in _AT_WORK for step in explanation.steps):
        return False
    return explanation.state in _STEADY


def _fields(line: StoryLine, caller: Caller) -> dict[str, Any]:
    """The line as the caller may read it: tenants get the text without names of hubs and hosts."""
    task, text = line.task, line.text
    if not caller.is_operator:
        task = line.task if line.shown_task is None else line.shown_task
        text = line.text if line.shown_text is None else line.shown_text
    return {
        "id": str(line.seq),
        "run": line.run,
        "part": line.part,
        "attempt": line.attempt,
        "number": line.number,
        "at": wire.timestamp_fields(line.at),
        "kind": line.kind,
        "task": task,
        "text": text,
    }


def _part(line: StoryLine, caller: Caller) -> Part:
    return Part(_WATCH(line=_fields(line, caller)).SerializeToString(), str(line.seq))


def _missing(count: int) -> Part:
    return Part(_WATCH(missing=count).SerializeToString())


def _after(request: Any) -> int:
    """The number of the line to read after; 0 (the beginning) when the request names none."""
    text: str = request.after
    if not text:
        return 0
    if len(text) > 18 or not (text.isascii() and text.isdecimal()):
        remedy = "give the id of a line, or nothing"
        raise Refused("", Violation("after", f"{shown(text)} is not the id of a line", remedy))
    return int(text)


def _limit(request: Any) -> int:
    limit: int = request.limit if request.HasField("limit") else MOST_LINES
    if limit < 0:
        raise Refused("", Violation("limit", f"{limit} is negative", "give 0 or more"))
    return min(limit, MOST_LINES)


def _check_run(run: str) -> None:
    if len(run) > LONGEST_RUN or "\0" in run:
        remedy = "give a part such as post_install, or nothing"
        raise Refused("", Violation("run", f"{shown(run)} is not the name of a run", remedy))
