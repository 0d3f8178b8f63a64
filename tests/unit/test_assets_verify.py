"""Verifying reads every byte and runs every program; a planted fault of each kind is caught."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boatyard.app.main import main
from boatyard.assets import DEFAULT_VERSION, PROGRAMS, Assets
from boatyard.assets.installation import InstallMethod, InstallOptions, install_programs
from boatyard.assets.releases import release_of
from boatyard.assets.verification import verify_programs
from tests.support.assets import ProgressListener, program, put, put_programs


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    assets = Assets(tmp_path / "assets", path="")
    put_programs(assets.folder(DEFAULT_VERSION), release_of(DEFAULT_VERSION))
    install_programs(
        assets, DEFAULT_VERSION, InstallOptions(methods=(InstallMethod.FOUND,)), ProgressListener()
    )
    return assets


def wrong(assets: Assets) -> dict[str, str]:
    return {
        one.program: one.problem for one in verify_programs(assets, DEFAULT_VERSION) if one.problem
    }


def test_good_programs_are_good(assets: Assets) -> None:
    assert [one.program for one in verify_programs(assets, DEFAULT_VERSION)] == list(PROGRAMS)
    assert wrong(assets) == {}


def test_a_flipped_byte_is_caught_though_size_and_time_are_the_same(assets: Assets) -> None:
    path = assets.program(DEFAULT_VERSION, "kubelet")
    before = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert assets.missing(DEFAULT_VERSION) == (), "the quick look does not read"
    assert wrong(assets) == {"kubelet": "has changed since it was installed (sha256)"}


def test_another_version_in_its_place_is_caught(assets: Assets) -> None:
    put(assets.folder(DEFAULT_VERSION) / "kubelet", program("kubelet", "1.30.0"))
    assert list(wrong(assets)) == ["kubelet"]


def test_a_program_that_speaks_differently_from_its_record_is_caught(assets: Assets) -> None:
    """The same bytes, but what they do has changed: a script whose interpreter is another."""
    voice = assets.directory / "voice"
    voice.write_text(f"Kubernetes v{DEFAULT_VERSION}")
    put(assets.folder(DEFAULT_VERSION) / "kubelet", f"#!/bin/sh\ncat '{voice}'\n".encode())
    install_programs(
        assets, DEFAULT_VERSION, InstallOptions(methods=(InstallMethod.FOUND,)), ProgressListener()
    )
    assert wrong(assets) == {}
    voice.write_text("Kubernetes v1.30.0")
    assert wrong(assets) == {"kubelet": f"says 1.30.0, not {DEFAULT_VERSION}"}


def test_a_missing_program_is_caught(assets: Assets) -> None:
    assets.program(DEFAULT_VERSION, "etcd").unlink()
    assert wrong(assets) == {"etcd": "cannot be read: No such file or directory"}


def test_the_command_ends_with_1_and_the_remedy(
    assets: Assets, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["assets", "verify", "--dir", str(assets.directory)]
    assert main(words) == 0
    put(assets.folder(DEFAULT_VERSION) / "kubelet", program("kubelet", "1.30.0"))
    assert main(words) == 1
    said = capsys.readouterr()
    assert f"{DEFAULT_VERSION}: kubelet: has changed" in said.out
    assert f"{DEFAULT_VERSION}: etcd: good" in said.out
    assert "run: boatyard assets install\n" in said.err


def test_nothing_installed_is_not_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assets", "verify", "--dir", str(tmp_path)]) == 1
    assert "run: boatyard assets install" in capsys.readouterr().err
    assert main(["assets", "verify", "--all", "--dir", str(tmp_path)]) == 1
