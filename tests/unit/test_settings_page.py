"""The settings page says what the settings are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from boatyard.wiring.settings import Settings

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools/settings_page.py"


def check(tool: Path) -> int:
    return subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, check=False
    ).returncode


def test_the_page_is_up_to_date_and_names_every_setting() -> None:
    assert check(TOOL) == 0
    text = (ROOT / "docs/guide/settings.md").read_text()
    for field in msgspec.structs.fields(Settings):
        assert f"| `{field.name}` |" in text


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    for name in (
        "tools/settings_page.py",
        "src/boatyard/wiring/settings.py",
        "docs/guide/settings.md",
    ):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / name).read_text())
    assert check(tmp_path / "tools/settings_page.py") == 0
    page = tmp_path / "docs/guide/settings.md"
    page.write_text(page.read_text().replace("8000", "9000"))
    assert check(tmp_path / "tools/settings_page.py") == 1
