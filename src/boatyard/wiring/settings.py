"""Every setting of the processes: from flags, then environment (BOATYARD_…), then a TOML file, then the default."""

from __future__ import annotations

import os
import tomllib
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from boatyard.assets.installed_programs import default_directory
from boatyard.model.errors import Refused

ENVIRONMENT_PREFIX = "BOATYARD_"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field per setting; its comment is the text of docs/guide/settings.md."""

    data: str = ""  # directory for keys, tokens, the embedded database and the twin
    database_url: str = ""  # a PostgreSQL of yours; empty: one is started in the data directory
    grpc: str = "127.0.0.1:8000"  # address of the gRPC API; port 0 takes any
    rest: str = "127.0.0.1:8080"  # address of the REST API; port 0 takes any
    tls: bool = False  # serve TLS with a certificate made by us
    tls_cert: str = ""  # serve TLS with this certificate (PEM)
    tls_key: str = ""  # and its key (PEM)
    anonymous: bool = False  # callers without a token are operators; loopback addresses only
    bare: bool = False  # an empty data directory gets no catalogue, hubs or tenants
    templates: tuple[
        str, ...
    ] = ()  # folders of roles to offer; empty: those shipped, and `roles` in the data directory (`up` only)
    allowed_hosts: tuple[str, ...] = ()  # host names under which the REST API may be called
    api_url: str = ""  # REST API as a worker's runs of roles reach it; empty: that of `up` itself
    api_ca: str = ""  # certificates they trust there (PEM); empty: the server's, or the system's
    twin_socket: str = ""  # unix socket of the twin; empty: in the data directory
    twin_delays: str = "demo"  # how long things take in the twin: demo, instant or real
    twin_layout: str = ""  # JSON file with the data centre of a new twin; empty: two small hubs
    real_nodes: bool = False  # clusters may have real nodes, whose tenants can become root here
    keeper_socket: str = ""  # unix socket of the keeper of clusters; empty: in the data directory
    workers_at_once: int = 32  # objects one worker process looks at side by side
    lease_seconds: float = 30.0  # without a sign of life for so long, work passes to another worker
    poll_seconds: float = 1.0  # how often a worker looks for work that no hint told it of
    pool_size: int = 10  # connections to PostgreSQL per process
    runs_at_once: int = 16  # runs of roles on this machine; more wait; 0: another runs them
    runs_per_hub: int = 12  # of them for one hub
    runs_per_template: int = 8  # of them of one template, so that none holds up all others
    run_starts_per_minute: int = 600  # for one hub, and of one template
    delete_minutes: float = 15.0  # what is not released by then becomes a Leftover
    freeze_minutes: float = 60.0  # a cluster frozen this long is stopped; resuming takes longer
    role_minutes: float = 60.0  # a part of a template's role that runs longer is ended
    event_days: float = 30.0  # how long events, and stories of clusters that are gone, are kept
    assets: str = ""  # directory of the Kubernetes programs; empty: `assets` in the cache
    assets_from: str = ""  # directory where an installation looks for them before PATH
    kubernetes_mirror: str = ""  # address of a copy of the Kubernetes releases; empty: upstream's
    etcd_mirror: str = ""  # address of a copy of the etcd releases; empty: upstream's
    kubeconfig: str = ""  # file with the way to an operator's hub; empty: the cluster it runs in
    kube_context: str = ""  # a context of it other than the current one
    system_namespace: str = "boatyard-system"  # where a hub's settings, claims and Lease are
    probes: str = "127.0.0.1:8081"  # address of an operator's health and metrics; port 0 takes any
    callbacks: str = ""  # address where an operator hears results of automation; empty: nowhere
    log_level: str = "info"  # debug, info, warning, error

    @property
    def data_dir(self) -> Path:
        return Path(self.data or default_data_dir()).expanduser().absolute()

    @property
    def assets_dir(self) -> Path:
        return Path(self.assets).expanduser().absolute() if self.assets else default_directory()


def default_data_dir(environ: Mapping[str, str] = os.environ) -> str:
    base = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(base) / "boatyard")


def load_settings(args: Namespace, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force. Refused, with the name of the setting and of its source, when one is wrong."""
    values: dict[str, Any] = {}
    config = environ.get(ENVIRONMENT_PREFIX + "CONFIG", "")
    if config:
        values |= _read_file(Path(config))
    for name in Settings.__struct_fields__:
        text = environ.get(ENVIRONMENT_PREFIX + name.upper())
        if text is not None:
            values[name] = _parse_value(name, text, source=ENVIRONMENT_PREFIX + name.upper())
    for name in Settings.__struct_fields__:
        flag = getattr(args, name, None)
        if flag is not None:
            values[name] = flag
    try:
        return msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise Refused(f"the settings are wrong: {error}") from error


def _read_file(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"cannot read the settings file {path}: {error}") from error
    unknown = sorted(set(content) - set(Settings.__struct_fields__))
    if unknown:
        raise Refused(f"{path}: there is no setting {unknown[0]!r}")
    return content


def _parse_value(name: str, text: str, source: str) -> Any:
    field_type = {field.name: field.type for field in msgspec.structs.fields(Settings)}[name]
    if field_type == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return msgspec.convert(text, field_type, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(f"{source}={text!r} is wrong: {error}") from error
