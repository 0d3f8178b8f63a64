"""Rights that we lack on a hub are no mistake of whoever ordered there."""

from __future__ import annotations

import pytest

from boatyard.kube.errors import to_order_error
from boatyard.model.errors import Refused, Unavailable


@pytest.mark.parametrize(
    "reason, kind",
    [("Forbidden", Unavailable), ("Unauthorized", Unavailable), ("Invalid", Refused)],
)
def test_who_can_mend_a_refusal(reason: str, kind: type[Exception]) -> None:
    assert type(to_order_error(Refused("no", reason=reason))) is kind
