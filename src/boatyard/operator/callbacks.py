"""The HTTP server for results of automation: `/automation/runs/<run id>`. Started by the operator in every replica.

GET returns the state of a run, POST stores its result; both are signed with the run's secret
(automation/signatures.py).
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

from boatyard.automation import signatures
from boatyard.automation.external_runs import (
    RESULTS,
    SEND_AGAIN,
    ExternalRunResult,
    ExternalRunStore,
    StoredExternalRun,
    is_run_id,
)
from boatyard.model.errors import BoatyardError, Conflict, NotFound
from boatyard.operator.probes import serve_app

logger = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
MAX_CONCURRENT_REQUESTS = 16  # requests served at the same time; others get 503 and come again
_REQUEST_TIMEOUT_SECONDS = 20.0  # for one request, its body included
_MAX_WRITE_TRIES = 5  # of a write that conflicts with one of the driver
_LONGEST_MESSAGE = 1000
_LONGEST_FACT, _MOST_FACTS = 4096, 50


class RunResultHandler:
    """Answers requests about the automation runs of one hub, which `runs` reads and writes."""

    def __init__(self, runs: ExternalRunStore, now: Callable[[], datetime]) -> None:
        self._runs = runs
        self._now = now
        self._request_slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def handle_request(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        timestamp = request.headers.get(signatures.TIMESTAMP_HEADER, "")
        # Checked first: a request of a stranger must not take a slot, or cost the hub a request.
        if not is_run_id(id) or not signatures.is_fresh(timestamp, self._now().timestamp()):
            return _make_json_response(403, error="refused")
        if self._request_slots.locked():
            return _make_json_response(503, error="busy")
        try:
            async with self._request_slots, asyncio.timeout(_REQUEST_TIMEOUT_SECONDS):
                body = await request.read()
                record = await self._runs.find(id)
                secret = record.secret if record is not None else ""
                signature = request.headers.get(signatures.SIGNATURE_HEADER, "")
                is_signed = signatures.is_signed(secret, timestamp, body, signature)
                if record is None or not is_signed:
                    return _make_json_response(403, error="refused")
                if request.method == "GET":
                    return _make_run_response(record)
                return await self._store_result(record, body)
        except (BoatyardError, TimeoutError) as error:
            logger.warning("automation result not stored", extra={"run": id, "why": str(error)})
            return _make_json_response(503, error="not now")

    async def _store_result(self, record: StoredExternalRun, body: bytes) -> web.Response:
        try:
            result = msgspec.json.decode(body, type=ExternalRunResult)
        except msgspec.DecodeError:
            return _make_json_response(400, error="the body is no result")
        if result.result not in (*RESULTS, SEND_AGAIN):
            return _make_json_response(
                400, error=f"result is one of {', '.join((*RESULTS, SEND_AGAIN))}"
            )
        if len(result.facts) > _MOST_FACTS or any(
            len(name) + len(value) > _LONGEST_FACT for name, value in result.facts.items()
        ):
            return _make_json_response(
                400, error=f"at most {_MOST_FACTS} facts of {_LONGEST_FACT} characters"
            )
        result = msgspec.structs.replace(result, message=result.message[:_LONGEST_MESSAGE])
        current: StoredExternalRun | None = record
        for _ in range(_MAX_WRITE_TRIES):
            if current is None:
                return _make_json_response(
                    403, error="refused"
                )  # the run was released: nobody waits for it
            if current.run.is_over:
                return _make_run_response(current)
            finished_run = current.run.with_result(result, self._now().isoformat())
            try:
                await self._runs.change(current, finished_run)
            except (Conflict, NotFound):
                current = await self._runs.find(record.run.id)
                continue
            logger.info(
                "automation result stored",
                extra={"run": finished_run.id, "state": finished_run.state},
            )
            return _make_run_response(msgspec.structs.replace(current, run=finished_run))
        return _make_json_response(503, error="not now")


@asynccontextmanager
async def serve_run_results(address: str, door: RunResultHandler) -> AsyncIterator[int]:
    """Serves `door` on HOST:PORT while the block runs. Yields the port. Refused when the address cannot be bound."""
    site = web.Application(client_max_size=LARGEST_BODY)
    site.router.add_get("/automation/runs/{id}", door.handle_request, allow_head=False)
    site.router.add_post("/automation/runs/{id}", door.handle_request)
    async with serve_app(address, site, purpose="results of automation") as port:
        yield port


def _make_run_response(record: StoredExternalRun) -> web.Response:
    run = record.run
    return _make_json_response(200, state=run.state, result=msgspec.to_builtins(run.result))


def _make_json_response(status: int, **fields: object) -> web.Response:
    body = msgspec.json.encode(fields)
    return web.Response(body=body, status=status, content_type="application/json")
