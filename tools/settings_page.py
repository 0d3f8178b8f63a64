"""Writes docs/guide/settings.md from src/boatyard/wiring/settings.py. `--check` says whether it is stale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/boatyard/wiring/settings.py"
PAGE = ROOT / "docs/guide/settings.md"

_HEAD = """\
# Settings

Made from `src/boatyard/wiring/settings.py`; not edited.

A setting is taken from the command's flag (where there is one), then from the environment
(`BOATYARD_` and its name in capitals), then from the TOML file that `BOATYARD_CONFIG` names, then from
the default below. A wrong value, or a name that does not exist in the file, is refused at start with its source.

| setting | default | what it does |
| --- | --- | --- |
"""
_FIELD = re.compile(r"^    (?P<name>\w+): [^=]+= (?P<default>.+?)  # (?P<words>.+)$", re.MULTILINE)


def page() -> str:
    rows = [
        f"| `{found['name']}` | {_shown(found['default'])} | {found['words']} |"
        for found in _FIELD.finditer(SOURCE.read_text())
    ]
    return _HEAD + "\n".join(rows) + "\n"


def _shown(default: str) -> str:
    return "" if default in ('""', "()") else f"`{default.strip(chr(34))}`"


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    if not PAGE.exists() or PAGE.read_text() != text:
        sys.stderr.write("docs/guide/settings.md is stale; run: make proto\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
