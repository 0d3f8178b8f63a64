"""What every suite shares. Fixtures for a subject live beside its tests or in tests/support."""

from __future__ import annotations

import signal
from pathlib import Path

import hypothesis
import pytest

# No deadline: two busy cores are slow at times, and slow is not wrong.
hypothesis.settings.register_profile("boatyard", deadline=None, print_blob=True)
hypothesis.settings.load_profile("boatyard")

# A real PostgreSQL: `database_url`, `ledger`; an API that answers as told: `told_server`, `ordering`.
pytest_plugins = ["tests.support.postgres", "tests.support.scripted_server"]

# Whoever starts the tests in the background may have Ctrl-C ignored, which every process would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

E2E = Path(__file__).parent / "e2e"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(E2E):
            item.add_marker(pytest.mark.e2e)
