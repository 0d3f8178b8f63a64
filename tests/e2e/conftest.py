"""What the end-to-end tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.assets import NO_ASSETS


@pytest.fixture(autouse=True)
def _simulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of real clusters that happen to be installed change nothing, except for tests marked `real`."""
    if request.node.get_closest_marker("real") is None:
        monkeypatch.setenv("BOATYARD_ASSETS", NO_ASSETS)


@pytest.fixture
def home() -> Iterator[Path]:
    with _new_home() as path:
        yield path


@pytest.fixture(scope="module")
def module_home() -> Iterator[Path]:
    """One for all tests of a file."""
    with _new_home() as path:
        yield path


@contextmanager
def _new_home() -> Iterator[Path]:
    """Short, because sockets live in it."""
    path = Path(tempfile.mkdtemp(prefix="by-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
