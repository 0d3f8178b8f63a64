"""What counts as installed: recorded, unchanged, and of the pinned version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boatyard.assets import (
    CONTROL_PLANE_PROGRAMS,
    DEFAULT_VERSION,
    PINNED_VERSIONS,
    PROGRAMS,
    Assets,
    default_directory,
)
from boatyard.assets.go_build import Recipe
from boatyard.assets.installation import InstallMethod, InstallOptions, install_programs
from boatyard.assets.manifest import MANIFEST_FILE
from boatyard.assets.releases import RELEASES, parse_version, release_of
from boatyard.model.errors import Refused
from tests.support.assets import ProgressListener, needs_assets, program, put, put_programs

FOUND = InstallOptions(methods=(InstallMethod.FOUND,))


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    """Every version installed, of stand-ins that lay in the directory."""
    assets = Assets(tmp_path / "assets", path="")
    for version in PINNED_VERSIONS:
        put_programs(assets.folder(version), release_of(version))
        install_programs(assets, version, FOUND, ProgressListener())
    return assets


def test_what_is_installed_is_told_ascending(assets: Assets) -> None:
    assert assets.versions() == PINNED_VERSIONS == tuple(sorted(PINNED_VERSIONS))
    assert assets.missing(DEFAULT_VERSION) == ()
    for name in PROGRAMS:
        assert assets.program(DEFAULT_VERSION, name) == assets.directory / DEFAULT_VERSION / name


def test_nothing_is_run_to_know_it(assets: Assets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    monkeypatch.setattr("hashlib.file_digest", None)
    assert assets.versions() == PINNED_VERSIONS
    assert assets.program(DEFAULT_VERSION, "etcd").exists()


@pytest.mark.parametrize(
    "name, counts",
    [pytest.param(one, one not in CONTROL_PLANE_PROGRAMS, id=one) for one in PROGRAMS],
)
def test_a_version_without_a_control_plane_does_not_count(
    assets: Assets, name: str, counts: bool
) -> None:
    assets.program(DEFAULT_VERSION, name).unlink()
    assert assets.missing(DEFAULT_VERSION) == (name,)
    assert (DEFAULT_VERSION in assets.versions()) is counts
    with pytest.raises(Refused, match="run: boatyard assets install"):
        assets.program(DEFAULT_VERSION, name)


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def longer(path: Path) -> None:
    found = path.stat()
    path.write_bytes(path.read_bytes() + b"#")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def not_executable(path: Path) -> None:
    path.chmod(0o644)


def another_version(path: Path) -> None:
    put(path, program(path.name, "1.30.0"))


@pytest.mark.parametrize("change", [touched, longer, not_executable, another_version])
def test_a_program_that_has_changed_does_not_count(assets: Assets, change) -> None:
    change(assets.program(DEFAULT_VERSION, "kubelet"))
    assert assets.missing(DEFAULT_VERSION) == ("kubelet",)


@pytest.mark.parametrize("text", ["", "{", '{"programs": {"etcd": 7}}', "[]"])
def test_a_damaged_manifest_is_none(assets: Assets, text: str) -> None:
    (assets.folder(DEFAULT_VERSION) / MANIFEST_FILE).write_text(text)
    assert assets.missing(DEFAULT_VERSION) == PROGRAMS


def test_the_programs_of_a_former_pin_do_not_count(assets: Assets) -> None:
    manifest = assets.folder(DEFAULT_VERSION) / MANIFEST_FILE
    manifest.write_text(manifest.read_text().replace(release_of(DEFAULT_VERSION).etcd, "3.4.0"))
    assert assets.missing(DEFAULT_VERSION) == ("etcd", "etcdutl")


def test_a_version_that_is_not_pinned_is_refused(assets: Assets) -> None:
    for ask in (assets.missing, assets.folder, lambda one: assets.program(one, "etcd")):
        with pytest.raises(Refused, match=r"1\.29\.0 is not one of"):
            ask("1.29.0")
    with pytest.raises(Refused, match="not one of the programs"):
        assets.program(DEFAULT_VERSION, "kubeadm")


@pytest.mark.parametrize("text", ["1.36.3", "v1.36.3", "1.36"])
def test_a_release_is_known_by_version_and_minor(text: str) -> None:
    assert release_of(text).kubernetes == "1.36.3"


@pytest.mark.parametrize(
    "environ, expected",
    [
        ({"BOATYARD_ASSETS": "/a", "BOATYARD_CACHE": "/c"}, "/a"),
        ({"BOATYARD_CACHE": "/c"}, "/c/assets"),
    ],
)
def test_where_they_are_by_default(environ: dict[str, str], expected: str) -> None:
    assert default_directory(environ) == Path(expected)


@pytest.mark.parametrize(
    "text, version",
    [
        ("Kubernetes v1.36.3\n", "1.36.3"),
        ("etcd Version: 3.6.8\nGit SHA: 1a2b\nGo Version: go1.26.8\n", "3.6.8"),
        ("Client Version: v1.36.3\nKustomize Version: v5.8.1\n", "1.36.3"),
        ("Kubernetes v1.36.3-rc.1", "1.36.3-rc.1"),
        ("Client Version: v1.36.3+k3s1", "1.36.3+k3s1"),
        ("Client Version: 4.20.1", "4.20.1"),
        ('{"gitVersion": "v1.36.3"}', "1.36.3"),
        ("go1.26.8", ""),
        ("no idea", ""),
    ],
)
def test_the_version_in_what_a_program_says(text: str, version: str) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("version", PINNED_VERSIONS)
def test_the_recipe_builds_the_pinned_versions(version: str) -> None:
    release = RELEASES[version]
    recipe = Recipe(release)
    modules = (recipe.folder / release.minor / "go.mod").read_text()
    assert f"require k8s.io/kubernetes v{version}\n" in modules
    for module in ("server", "etcdutl"):
        assert f"\tgo.etcd.io/etcd/{module}/v3 v{release.etcd}\n" in modules
    assert f"-X k8s.io/component-base/version.gitVersion=v{version} " in recipe.flags()[-1]
    assert len(recipe.files()) == 3


def test_a_test_that_needs_programs_says_how_to_have_them(
    assets: Assets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOATYARD_ASSETS", str(assets.directory))
    assert needs_assets(*PINNED_VERSIONS).directory == assets.directory
    monkeypatch.setenv("BOATYARD_ASSETS", str(tmp_path / "none"))
    with pytest.raises(pytest.skip.Exception, match="run: boatyard assets install"):
        needs_assets()
