"""What the end-to-end tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """Short, because sockets live in it."""
    path = Path(tempfile.mkdtemp(prefix="by-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
