"""`boatyard assets list|install|verify|prune`: the programs that real clusters on this machine are made of."""

from __future__ import annotations

import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from boatyard.app.progress import open_progress
from boatyard.assets.cache import BUILDS_DIRECTORY, cache_directory, prune_builds
from boatyard.assets.go_build import Recipe
from boatyard.assets.installation import (
    InstallMethod,
    InstallOptions,
    cached_build,
    install_programs,
)
from boatyard.assets.installed_programs import Assets, format_install_command
from boatyard.assets.manifest import read_manifest
from boatyard.assets.mirrors import ETCD_MIRROR, KUBERNETES_MIRROR, Mirrors
from boatyard.assets.releases import (
    DEFAULT_VERSION,
    PINNED_VERSIONS,
    PROGRAMS,
    RELEASES,
    release_of,
)
from boatyard.assets.verification import verify_programs
from boatyard.cli.output import format_columns
from boatyard.cli.text_format import clean
from boatyard.model.errors import BoatyardError, Refused
from boatyard.wiring.settings import Settings, load_settings

_ALARM_SECONDS = 0.01
_DAY_SECONDS = 86400.0


def run(args: Namespace) -> int:
    try:
        settings = load_settings(args)
        versions = _parse_versions(args)
    except Refused as error:
        sys.stderr.write(f"boatyard: {error}\n")
        return 2
    try:
        return _ACTIONS[args.action](args, settings, versions)
    except BoatyardError as error:
        sys.stderr.write("".join(f"{clean(line)}\n" for line in f"boatyard: {error}".splitlines()))
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("boatyard: interrupted; the same command goes on where this one stopped\n")
        return 130


def open_assets(settings: Settings) -> Assets:
    """The programs in the directory of the settings."""
    return Assets(settings.assets_dir)


def _parse_versions(args: Namespace) -> tuple[str, ...]:
    """The versions given as flags, ascending; empty when there are none."""
    if args.all:
        return PINNED_VERSIONS
    chosen_versions = {release_of(text).kubernetes for text in args.versions or ()}
    return tuple(version for version in PINNED_VERSIONS if version in chosen_versions)


def _install(args: Namespace, settings: Settings, versions: Sequence[str]) -> int:
    means = InstallOptions(
        methods=(InstallMethod(args.by),) if args.by else tuple(InstallMethod),
        search_directory=Path(settings.assets_from).expanduser().absolute()
        if settings.assets_from
        else None,
        mirrors=Mirrors(
            kubernetes=settings.kubernetes_mirror or KUBERNETES_MIRROR,
            etcd=settings.etcd_mirror or ETCD_MIRROR,
        ),
    )
    with interrupt_on_signals(), open_progress(sys.stderr) as teller:
        for version in versions or (DEFAULT_VERSION,):
            install_programs(open_assets(settings), version, means, teller)
    return 0


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP (a closed terminal) act like Ctrl-C, so that the compiler ends too.

    Python drops exceptions raised in finalizers and fork hooks. When it has dropped an interrupt there, an
    alarm raises it again a moment later, wherever the program is then: no signal is lost.
    """

    def raise_dropped_again(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _ALARM_SECONDS)
        else:
            hook(unraisable)

    hook, sys.unraisablehook = sys.unraisablehook, raise_dropped_again
    handlers = {
        signal_number: signal.signal(signal_number, signal.default_int_handler)
        for signal_number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    }
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)
        sys.unraisablehook = hook


def _list(args: Namespace, settings: Settings, versions: Sequence[str]) -> int:
    rows = [
        row
        for version in versions or PINNED_VERSIONS
        for row in _program_rows(open_assets(settings), version)
    ]
    for line in format_columns(("KUBERNETES", "PROGRAM", "VERSION", "STATE", "FROM"), rows):
        print(line)
    return 0


def _program_rows(assets: Assets, version: str) -> list[tuple[str, ...]]:
    release, folder = release_of(version), assets.folder(version)
    usable, records = assets.installed_records(version), read_manifest(folder).programs
    rows: list[tuple[str, ...]] = []
    for name in PROGRAMS:
        exists = (folder / name).exists()
        state = "missing"
        if exists:
            state = "ready" if name in usable else "changed" if name in records else "not checked"
        record = records.get(name) if exists else None
        source = f"{record.source}: {record.place}" if record else ""
        rows.append((release.kubernetes, name, release.version_of(name), state, source))
    return rows


def _verify(args: Namespace, settings: Settings, versions: Sequence[str]) -> int:
    assets = open_assets(settings)
    checked_versions = versions or [
        version for version in PINNED_VERSIONS if read_manifest(assets.folder(version)).programs
    ]
    if not checked_versions:
        raise Refused(f"nothing is installed in {assets.directory}; run: boatyard assets install")
    faulty_versions = set()
    for version in checked_versions:
        for finding in verify_programs(assets, version):
            print(f"{version}: {finding.program}: {finding.problem or 'good'}", flush=True)
            if finding.problem:
                faulty_versions.add(version)
    for version in sorted(faulty_versions):
        command = format_install_command(release_of(version))
        sys.stderr.write(f"boatyard: Kubernetes {version} is not as it should be; run: {command}\n")
    return 1 if faulty_versions else 0


def _prune(args: Namespace, settings: Settings, versions: Sequence[str]) -> int:
    cache = cache_directory()
    needed_keys = {cached_build(Recipe(release), cache).key for release in RELEASES.values()}
    before = time.time() - args.days * _DAY_SECONDS
    try:
        removed = list(prune_builds(cache, keep=needed_keys, before=before))
    except OSError as error:
        raise Refused(f"cannot remove builds in {cache}: {error.strerror}") from error
    for key, size in removed:
        print(f"removed {key}, {size / 1e6:.0f} MB")
    if not removed:
        print(f"nothing to remove in {cache / BUILDS_DIRECTORY}")
    return 0


_ACTIONS = {"list": _list, "install": _install, "verify": _verify, "prune": _prune}
