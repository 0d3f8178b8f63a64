"""One try at one item, and what came of it. Nothing raised by a step passes through, save a lost lease."""

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


class Fault(StrEnum):
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    BUG = "bug"


@dataclass(frozen=True)
class Failed:
    """Why a try did not succeed."""

    fault: Fault
    reason: str
    message: str


@dataclass(frozen=True)
class Attempt:
    """`released` says which way the try went; the answer is an outcome or a failure."""

    item: Item
    released: bool
    answer: Outcome | Failed


async def attempt(
    item: Item, *, released: bool, act: Awaitable[Outcome], order_id: str, seconds: float
) -> Attempt:
    """Tries once, for at most so many seconds. A step that raises what it should not is a bug: logged, never fatal."""
    try:
        async with asyncio.timeout(seconds):
            answer: Outcome | Failed = await act
    except LeaseLost:
        raise
    except Refused as refusal:
        answer = Failed(Fault.REFUSED, refusal.reason, str(refusal))
    except TimeoutError:
        answer = Failed(Fault.UNAVAILABLE, "Timeout", f"no answer within {seconds:g} s")
    except BoatyardError as error:
        reason = getattr(error, "reason", type(error).__name__)
        logger.warning(
            "step will be retried", extra={"order": order_id, "item": item.key, "why": str(error)}
        )
        answer = Failed(Fault.UNAVAILABLE, reason, str(error))
    except Exception as bug:  # the engine's rule, kept here because quarantine is per step
        error_id = _error_id(bug)
        logger.exception(
            "internal error in a step",
            extra={"order": order_id, "item": item.key, "error_id": error_id},
        )
        answer = Failed(Fault.BUG, "InternalError", f"internal error {error_id}")
    return Attempt(item=item, released=released, answer=answer)


def _error_id(bug: Exception) -> str:
    """The same bug at the same place has the same id, so that messages stay stable while it lasts."""
    trace = bug.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return hashlib.sha256(f"{type(bug).__name__}@{place}".encode()).hexdigest()[:8]
