"""By which word a server is asked for the rest of the same file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from boatyard.assets.downloads import _validator

DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


@pytest.mark.parametrize(
    "headers, validator",
    [
        pytest.param({"ETag": '"a1"', "Last-Modified": DATE}, '"a1"', id="a strong tag"),
        pytest.param({"ETag": 'W/"a1"', "Last-Modified": DATE}, DATE, id="never a weak one"),
        pytest.param({"ETag": 'W/"a1"'}, "", id="rather none"),
        pytest.param({"Last-Modified": DATE}, DATE, id="a date"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_a_weak_tag_may_stand_for_other_bytes(headers: dict[str, str], validator: str) -> None:
    response: Any = SimpleNamespace(headers=headers)

    assert _validator(response) == validator
