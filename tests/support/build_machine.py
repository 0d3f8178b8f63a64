"""A machine that builds programs with a stand-in for Go, from a recipe and into a cache of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from boatyard.assets import DEFAULT_VERSION, Assets
from boatyard.assets.cache import CachedBuild
from boatyard.assets.go_build import Recipe
from boatyard.assets.installation import (
    InstallMethod,
    InstallOptions,
    cached_build,
    install_programs,
)
from boatyard.assets.releases import release_of
from tests.support.assets import ProgressListener, put

RELEASE = release_of(DEFAULT_VERSION)
# Writes down what it was given, says three packages, and makes a file that is every program.
GO = """\
#!/bin/sh
[ "$1" = env ] && {{ echo "{version}"; exit; }}
echo "$*" >> {folder}/calls
env > {folder}/environment
if [ "$1" = list ]; then
    echo "go: downloading example.com/a v1.0.0"
    printf 'errors\\nexample.com/a\\nboatyard.invalid/kube\\n'
    exit
fi
printf 'errors\\nexample.com/a\\n'
{then}
cat > kube <<'END'
#!/bin/sh
case "${{0##*/}}" in
    etcd) echo "etcd Version: {etcd}" ;;
    etcdutl) echo "etcdutl version: {etcd}" ;;
    *) echo "Kubernetes v{kubernetes}" ;;
esac
END
"""


class BuildMachine:
    """A machine with a stand-in for Go and a recipe of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        for name, text in {
            "main.go": "package main\n",
            f"{RELEASE.minor}/go.mod": "module x\n\ngo 1.26.0\n",
            f"{RELEASE.minor}/go.sum": "",
        }.items():
            (folder / "recipe" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "recipe" / name).write_text(text)
        (folder / "bin").mkdir()
        self.go()
        # The system's own directories: the stand-in is a script.
        self.assets = Assets(folder / "assets", path=f"{folder / 'bin'}:{os.defpath}")

    def go(
        self, then: str = "", version: str = "go1.26.9", kubernetes: str = RELEASE.kubernetes
    ) -> None:
        text = GO.format(
            folder=self.folder,
            then=then,
            version=version,
            etcd=RELEASE.etcd,
            kubernetes=kubernetes,
        )
        put(self.folder / "bin" / "go", text.encode())

    def means(self, **others: Any) -> InstallOptions:
        """What an installation here may use: this recipe, and a cache of its own."""
        words = {
            "methods": (InstallMethod.BUILD,),
            "recipes": self.folder / "recipe",
            "cache": self.cache,
        }
        return InstallOptions(**words | others)

    def build(self, assets: Assets | None = None) -> ProgressListener:
        """Installs by building, into the directory of `assets` or the machine's own."""
        listener = ProgressListener()
        install_programs(assets or self.assets, DEFAULT_VERSION, self.means(), listener)
        return listener

    def directory(self, name: str) -> Assets:
        """Another directory for programs, as another clone may have."""
        return Assets(self.folder / name, path=self.assets.path)

    def change_recipe(self, text: str = "package main // changed\n") -> None:
        (self.folder / "recipe" / "main.go").write_text(text)

    def cached(self) -> CachedBuild:
        """The build of the recipe as it is now."""
        return cached_build(Recipe(RELEASE, self.folder / "recipe"), self.cache)

    def calls(self) -> list[str]:
        """How the compiler was called since the last time of asking."""
        path = self.folder / "calls"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    def left(self) -> list[Path]:
        """What no process works in any more and should be gone."""
        return [*self.folder.glob("assets/*/.build-*"), *self.cache.glob("built/.*.work")]
