"""The HTTP server for results of automation: `/automation/runs/<run id>`. Started by the operator in every replica.

GET returns the state of a run, POST stores its result; both are signed with the run's secret (automation/signing.py).
A caller who cannot sign learns nothing: an unknown run, a wrong signature and a stale signature get the same answer.
A stored result is never overwritten; whoever reports again gets the stored one. A replica that does not lead can store
results too: a result is written into the run's record on the hub, guarded by the record's version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import msgspec
from aiohttp import web

from boatyard.automation import signing
from boatyard.automation.runs import AGAIN, RESULTS, Kept, Result, RunBook, is_run_id
from boatyard.model.errors import BoatyardError, Conflict, NotFound
from boatyard.operator.probes import listen

logger = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
AT_ONCE = 16  # requests served at the same time; others get 503 and come again
_SECONDS = 20.0  # for one request, its body included
_TRIES = 5  # of a write that conflicts with one of the driver
_LONGEST_MESSAGE = 1000
_LONGEST_FACT, _MOST_FACTS = 4096, 50


class RunDoor:
    """Answers requests about the automation runs of one hub, which `runs` reads and writes."""

    def __init__(self, runs: RunBook, now: Callable[[], datetime]) -> None:
        self._runs = runs
        self._now = now
        self._seats = asyncio.Semaphore(AT_ONCE)

    async def answer(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        timestamp = request.headers.get(signing.TIMESTAMP, "")
        # Checked first: a request of a stranger must not take a slot, or cost the hub a request.
        if not is_run_id(id) or not signing.is_fresh(timestamp, self._now().timestamp()):
            return _said(403, error="refused")
        if self._seats.locked():
            return _said(503, error="busy")
        try:
            async with self._seats, asyncio.timeout(_SECONDS):
                body = await request.read()
                record = await self._runs.find(id)
                secret = record.secret if record is not None else ""
                signature = request.headers.get(signing.SIGNATURE, "")
                is_signed = signing.is_signed(secret, timestamp, body, signature)
                if record is None or not is_signed:
                    return _said(403, error="refused")
                if request.method == "GET":
                    return _stands(record)
                return await self._store(record, body)
        except (BoatyardError, TimeoutError) as error:
            logger.warning("automation result not stored", extra={"run": id, "why": str(error)})
            return _said(503, error="not now")

    async def _store(self, record: Kept, body: bytes) -> web.Response:
        try:
            result = msgspec.json.decode(body, type=Result)
        except msgspec.DecodeError:
            return _said(400, error="the body is no result")
        if result.result not in (*RESULTS, AGAIN):
            return _said(400, error=f"result is one of {', '.join((*RESULTS, AGAIN))}")
        if len(result.facts) > _MOST_FACTS or any(
            len(name) + len(value) > _LONGEST_FACT for name, value in result.facts.items()
        ):
            return _said(400, error=f"at most {_MOST_FACTS} facts of {_LONGEST_FACT} characters")
        result = msgspec.structs.replace(result, message=result.message[:_LONGEST_MESSAGE])
        current: Kept | None = record
        for _ in range(_TRIES):
            if current is None:
                return _said(403, error="refused")  # the run was released: nobody waits for it
            if current.run.is_over:
                return _stands(current)
            finished_run = current.run.ended(result, self._now().isoformat())
            try:
                await self._runs.change(current, finished_run)
            except (Conflict, NotFound):
                current = await self._runs.find(record.run.id)
                continue
            logger.info(
                "automation result stored",
                extra={"run": finished_run.id, "state": finished_run.state},
            )
            return _stands(msgspec.structs.replace(current, run=finished_run))
        return _said(503, error="not now")


@asynccontextmanager
async def open_door(address: str, door: RunDoor) -> AsyncIterator[int]:
    """Serves `door` on HOST:PORT while the block runs. Yields the port. Refused when the address cannot be bound."""
    site = web.Application(client_max_size=LARGEST_BODY)
    site.router.add_get("/automation/runs/{id}", door.answer, allow_head=False)
    site.router.add_post("/automation/runs/{id}", door.answer)
    async with listen(address, site, purpose="results of automation") as port:
        yield port


def _stands(record: Kept) -> web.Response:
    run = record.run
    return _said(200, state=run.state, result=msgspec.to_builtins(run.result))


def _said(status: int, **fields: object) -> web.Response:
    body = msgspec.json.encode(fields)
    return web.Response(body=body, status=status, content_type="application/json")
