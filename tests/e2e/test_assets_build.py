"""The real compiler on a small recipe; and the real programs, when they are here, as they should be."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from boatyard.app.main import main
from boatyard.assets import DEFAULT_VERSION, PINNED_VERSIONS, PROGRAMS, Assets
from boatyard.assets.go_build import BINARY_NAME
from boatyard.assets.installation import InstallMethod, InstallOptions, install_programs
from boatyard.assets.manifest import MANIFEST_FILE
from boatyard.assets.progress import ProgressUnit
from boatyard.assets.releases import release_of
from boatyard.model.errors import Unavailable
from tests.support.assets import ProgressListener, needs_assets

RELEASE = release_of(DEFAULT_VERSION)
# No modules to fetch.
MAIN = f"""\
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {{
	switch filepath.Base(os.Args[0]) {{
	case "etcd", "etcdutl":
		fmt.Println("version: {RELEASE.etcd}")
	default:
		fmt.Println("Kubernetes v{RELEASE.kubernetes}")
	}}
}}
"""


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    if shutil.which("go") is None:
        pytest.skip("Go is not here; put Go 1.26 or later on PATH")
    (tmp_path / "recipe" / RELEASE.minor).mkdir(parents=True)
    # Unlike that of any other run, which the compiler would remember.
    (tmp_path / "recipe" / "main.go").write_text(f"{MAIN}\n// {tmp_path} {time.time_ns()}\n")
    modules = "module boatyard.invalid/kube\n\ngo 1.26.0\n"
    (tmp_path / "recipe" / RELEASE.minor / "go.mod").write_text(modules)
    return tmp_path / "recipe"


def build(assets: Assets, recipes: Path) -> ProgressListener:
    listener = ProgressListener()
    cache = recipes.parent / "cache"
    install_programs(
        assets,
        DEFAULT_VERSION,
        InstallOptions(methods=(InstallMethod.BUILD,), recipes=recipes, cache=cache),
        listener,
    )
    return listener


def test_a_small_recipe_is_really_built_once(tmp_path: Path, recipes: Path) -> None:
    assets = Assets(tmp_path / "assets")

    heard = build(assets, recipes)

    assert assets.missing(DEFAULT_VERSION) == ()
    task = heard.tasks[-1]
    assert task.unit is ProgressUnit.PACKAGES
    assert task.total is not None
    assert task.total > 20, "its own and those of the language"
    assert task.steps[-1] >= 1
    assert build(assets, recipes).tasks == [], "nothing to do"


def test_a_recipe_that_does_not_compile_costs_nothing(tmp_path: Path, recipes: Path) -> None:
    assets = Assets(tmp_path / "assets")
    build(assets, recipes)
    before = (assets.folder(DEFAULT_VERSION) / BINARY_NAME).read_bytes()
    (recipes / "main.go").write_text(MAIN.replace("fmt.Println(", "fmt.Println(("))

    with pytest.raises(Unavailable, match=r"main\.go:\d+:\d+: syntax error"):
        build(assets, recipes)

    assert (assets.folder(DEFAULT_VERSION) / BINARY_NAME).read_bytes() == before
    assert assets.missing(DEFAULT_VERSION) == ()
    assert list(assets.folder(DEFAULT_VERSION).glob(".build-*")) == []


def test_modules_that_cannot_be_fetched_are_told(
    tmp_path: Path, recipes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GOFLAGS", "-modcacherw")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GONOSUMDB", "*")
    modules = recipes / RELEASE.minor / "go.mod"
    modules.write_text(modules.read_text() + "\nrequire example.com/a v1.0.0\n")
    (recipes / RELEASE.minor / "go.sum").write_text(
        "example.com/a v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
        "example.com/a v1.0.0/go.mod h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    )
    main_go = MAIN.replace('"fmt"', '"fmt"\n\t_ "example.com/a"')
    (recipes / "main.go").write_text(main_go)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9.*refused"):
        build(Assets(tmp_path / "assets"), recipes)


@pytest.mark.real
@pytest.mark.parametrize("version", PINNED_VERSIONS)
def test_the_real_programs_are_what_they_should_be(
    version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assets = needs_assets(version)
    words = ["--version", version, "--dir", str(assets.directory)]
    manifest = assets.folder(version) / MANIFEST_FILE
    before = manifest.read_bytes()

    assert main(["assets", "install", "--by", "found", *words]) == 0
    assert manifest.read_bytes() == before, "nothing to do"
    assert main(["assets", "verify", *words]) == 0
    said = capsys.readouterr().out
    for name in PROGRAMS:
        assert f"{version}: {name}: good" in said
