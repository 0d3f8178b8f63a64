"""What the machine lacks is said in one line with the remedy."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Answers to a question about its version as a good Python does; has no venv.
WITHOUT_VENV = '#!/bin/sh\ncase "$2" in *venv*) exit 1 ;; esac\n'
TOO_OLD = "#!/bin/sh\nexit 1\n"
SHIM_OF_NOTHING = '#!/bin/sh\necho "command not found" >&2\nexit 127\n'


@pytest.mark.parametrize(
    "programs, said, remedy",
    [
        pytest.param({}, "git is missing", "apt install git", id="no git"),
        pytest.param(
            {"git": ""}, "Python 3.11 or later is missing", "apt install python3", id="no Python"
        ),
        pytest.param(
            {"git": "", "python3": TOO_OLD},
            "Python 3.11 or later is missing",
            "apt install python3",
            id="an old Python",
        ),
        pytest.param(
            {"git": "", "python3.11": SHIM_OF_NOTHING},
            "Python 3.11 or later is missing",
            "apt install python3",
            id="a shim with nothing behind it",
        ),
        pytest.param(
            {"git": "", "python3.12": WITHOUT_VENV},
            "python3.12 has no venv",
            "apt install python3-venv",
            id="a Python without venv",
        ),
    ],
)
def test_what_is_missing_is_said_with_the_remedy(
    tmp_path: Path, programs: Mapping[str, str], said: str, remedy: str
) -> None:
    result = make("setup", tmp_path, programs)

    assert result.returncode != 0
    ours = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert len(ours) == 1
    assert said in ours[0]
    assert remedy in ours[0]
    assert not (tmp_path / "clone" / ".venv").exists()


def test_make_alone_lists_the_targets_and_needs_nothing(tmp_path: Path) -> None:
    result = make("", tmp_path, programs={})

    assert result.returncode == 0
    for target in ("demo", "up", "assets", "check", "test", "bench", "proto"):
        assert f"make {target} " in result.stdout


def test_bench_measures_orders_in_both_places(tmp_path: Path) -> None:
    """A Python that only says what it was told; `setup` counts as done."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text('#!/bin/sh\necho "told $@"\n')
    python.chmod(0o755)
    result = subprocess.run(
        ["make", "-C", str(ROOT), "-o", "setup", "bench", f"VENV={tmp_path}"],
        capture_output=True,
        text=True,
        check=True,
    )

    told = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("told ")]
    assert ["bench/fleet.py"] in told
    assert ["bench/fleet.py", "--hub", "kube"] in told
    assert all((ROOT / words[0]).is_file() for words in told)


def test_a_python_that_serves_is_found_behind_one_that_does_not(tmp_path: Path) -> None:
    programs = {"git": "", "python3.11": SHIM_OF_NOTHING, "python3": "#!/bin/sh\n"}

    result = subprocess.run(
        [shutil.which("sh") or "sh", ROOT / ".ci" / "find-python"],
        env={"PATH": str(machine(tmp_path, programs))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.stdout == "python3\n"


def make(
    target: str, folder: Path, programs: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`make target` in a copy of the ground, on a machine with make, a shell and `programs`."""
    clone = folder / "clone"
    for name in ("Makefile", ".ci/find-python", "requirements/uv.txt", "requirements/dev.txt"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    return subprocess.run(
        [shutil.which("make") or "make", *target.split()],
        cwd=clone,
        env={"PATH": str(machine(folder, programs))},
        capture_output=True,
        text=True,
        check=False,
    )


def machine(folder: Path, programs: Mapping[str, str]) -> Path:
    path = folder / "bin"
    path.mkdir()
    for tool in ("sh", "touch"):
        (path / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    for name, text in programs.items():
        (path / name).write_text(text or "#!/bin/sh\n")
        (path / name).chmod(0o755)
    return path
