"""One attempt at one item, and its result. Every error of a step becomes a value; only LeaseLost is raised."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum

from boatyard.model.errors import BoatyardError, LeaseLost, Refused
from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Outcome

logger = logging.getLogger(__name__)


class AttemptFault(StrEnum):
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    BUG = "bug"


@dataclass(frozen=True)
class AttemptFailure:
    """Why an attempt failed."""

    fault: AttemptFault
    reason: str
    message: str


@dataclass(frozen=True)
class Attempt:
    """`released` tells a release from an ensure; the answer is an outcome or a failure."""

    item: Item
    released: bool
    result: Outcome | AttemptFailure


async def run_attempt(
    item: Item, *, released: bool, act: Awaitable[Outcome], order_id: str, seconds: float
) -> Attempt:
    """Runs `act` for at most `seconds`. An unexpected exception is a bug of the step: logged, never fatal."""
    try:
        async with asyncio.timeout(seconds):
            answer: Outcome | AttemptFailure = await act
    except LeaseLost:
        raise
    except Refused as refusal:
        answer = AttemptFailure(AttemptFault.REFUSED, refusal.reason, str(refusal))
    except TimeoutError:
        answer = AttemptFailure(
            AttemptFault.UNAVAILABLE, "Timeout", f"no answer within {seconds:g} s"
        )
    except BoatyardError as error:
        reason = getattr(error, "reason", type(error).__name__)
        logger.warning(
            "step will be retried", extra={"order": order_id, "item": item.key, "why": str(error)}
        )
        answer = AttemptFailure(AttemptFault.UNAVAILABLE, reason, str(error))
    except Exception as bug:  # as in the engine; repeated here because quarantine is per step
        error_id = _error_id(bug)
        logger.exception(
            "step failed with an internal error",
            extra={"order": order_id, "item": item.key, "error_id": error_id},
        )
        answer = AttemptFailure(AttemptFault.BUG, "InternalError", f"internal error {error_id}")
    return Attempt(item=item, released=released, result=answer)


def _error_id(bug: Exception) -> str:
    """The same exception at the same line gets the same id, so that messages stay stable while the bug lasts."""
    trace = bug.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return hashlib.sha256(f"{type(bug).__name__}@{place}".encode()).hexdigest()[:8]
