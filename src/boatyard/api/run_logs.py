"""The logs of the runs of a cluster's template. Called by the gRPC and REST servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from google.protobuf.message import Message

from boatyard.api import policy
from boatyard.api.answers import Answers, OnStart, Part
from boatyard.api.crud import Call, Crud
from boatyard.api.kinds import BOATYARD_V1
from boatyard.api.orders import OrdersService
from boatyard.api.permissions import Verb
from boatyard.api.requests import LogRequest, ReadLogRequest, WatchLogRequest
from boatyard.api.watch import EventWatchers
from boatyard.ledger.run_logs import MOST_LINES, RunLogPage, StoredLogLine
from boatyard.model import wire
from boatyard.model.caller import Caller
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.boatyard import Explanation, StepState
from boatyard.resources.metadata import quote_text
from boatyard.resources.orders.item_graph import ROLE_STEPS

PAGE_LINES = 500  # lines that are read at once for a watch
POLL_SECONDS = 5.0  # how long a lost wake-up can go unnoticed
LONGEST_RUN = 128
_RESTING_STATES = ("READY", "DEGRADED", "HIBERNATED", "FAILED", "DELETE_FAILED")
_ACTIVE_STEP_STATES = (StepState.RUNNING, StepState.WAITING, StepState.RELEASING)

_READ_RESPONSE = wire.message(f"{BOATYARD_V1}.RunLogsReadResponse")
_WATCH_RESPONSE = wire.message(f"{BOATYARD_V1}.RunLogsWatchResponse")


class RunLogsService:
    """Implements the service `boatyard.v1.RunLogs` for everybody who may see the cluster, also after its deletion."""

    def __init__(self, crud: Crud, watches: EventWatchers, orders: OrdersService) -> None:
        self._ledger = crud.ledger
        self._watches = watches
        self._orders = orders

    def answers(self) -> Mapping[str, Answers]:
        answers = Answers(unary={"Read": self.read}, streams={"Watch": self.watch})
        return {f"{BOATYARD_V1}.RunLogs": answers}

    async def read(self, request: ReadLogRequest, call: Call) -> Message:
        policy.check(call.caller, Verb.STORY, "Cluster", private=False)
        after, limit = _parse_after(request), _parse_limit(request)
        _check_run(request.run)
        cluster, _deleted = await self._orders.find_live_or_deleted(request.cluster, call.caller)
        page = await self._read_page(cluster.id, after, request.run, limit)
        items = [_line_fields(line, call.caller) for line in page.lines]
        return _READ_RESPONSE(items=items, missing=page.missing)

    async def watch(
        self, request: WatchLogRequest, call: Call, on_start: OnStart
    ) -> AsyncIterator[Part]:
        """Streams every stored line; with `follow` also new lines, until no more can come.

        Lines are stored before the order's status changes: once the order was seen at rest, the lines
        read after that are all there are.
        """
        policy.check(call.caller, Verb.STORY, "Cluster", private=False)
        after = _parse_after(request)
        _check_run(request.run)
        watcher = await self._watches.add_watcher(None, None)
        try:
            cluster, deleted = await self._orders.find_live_or_deleted(request.cluster, call.caller)
            await on_start("")
            while True:
                explanation = await self._orders.make_explanation(
                    cluster, call.caller, deleted=deleted
                )
                is_complete = not request.follow or is_log_complete(explanation)
                while True:
                    page = await self._read_page(cluster.id, after, request.run, PAGE_LINES)
                    if page.missing:
                        yield _missing_part(page.missing)
                    for line in page.lines:
                        yield _line_part(line, call.caller)
                    if len(page.lines) < PAGE_LINES:
                        after = page.last_seq
                        break
                    after = page.lines[-1].seq
                if is_complete:
                    return
                while entries := await watcher.next_entries(POLL_SECONDS):
                    if any(
                        entry.row.id == cluster.id and entry.row.kind in ("Cluster", "Order")
                        for entry in entries
                    ):
                        break
                cluster, deleted = await self._orders.reload_cluster(cluster)
        finally:
            self._watches.remove_watcher(watcher)

    async def _read_page(self, order_id: str, after: int, run: str, limit: int) -> RunLogPage:
        page = await self._ledger.run_logs.read_lines(order_id, after=after, run=run, limit=limit)
        if after > page.last_seq:
            remedy = "leave it out to read from the beginning"
            raise Refused("", Violation("after", f"there is no line {after} yet", remedy))
        return page


def is_log_complete(explanation: Explanation) -> bool:
    """Whether no more lines can come: the cluster is ready, at rest, stuck or gone, and no run is under way."""
    if explanation.gone:
        return True
    if any(
        step.name in ROLE_STEPS and step.state in _ACTIVE_STEP_STATES for step in explanation.steps
    ):
        return False
    return explanation.state in _RESTING_STATES


def _line_fields(line: StoredLogLine, caller: Caller) -> dict[str, object]:
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


def _line_part(line: StoredLogLine, caller: Caller) -> Part:
    return Part(_WATCH_RESPONSE(line=_line_fields(line, caller)).SerializeToString(), str(line.seq))


def _missing_part(count: int) -> Part:
    return Part(_WATCH_RESPONSE(missing=count).SerializeToString())


def _parse_after(request: LogRequest) -> int:
    """The number of the line to read after; 0 (the beginning) when the request names none."""
    text = request.after
    if not text:
        return 0
    if len(text) > 18 or not (text.isascii() and text.isdecimal()):
        remedy = "give the id of a line, or nothing"
        raise Refused("", Violation("after", f"{quote_text(text)} is not the id of a line", remedy))
    return int(text)


def _parse_limit(request: ReadLogRequest) -> int:
    limit = request.limit if request.HasField("limit") else MOST_LINES
    if limit < 0:
        raise Refused("", Violation("limit", f"{limit} is negative", "give 0 or more"))
    return min(limit, MOST_LINES)


def _check_run(run: str) -> None:
    if len(run) > LONGEST_RUN or "\0" in run:
        remedy = "give a part such as post_install, or nothing"
        raise Refused("", Violation("run", f"{quote_text(run)} is not the name of a run", remedy))
