"""The address of an API server and the credentials for it, from a kubeconfig or from inside a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boatyard.model.errors import Refused
from boatyard.model.kubeconfig import (
    CLUSTERS,
    CONTEXTS,
    USERS,
    KubeconfigError,
    NoCurrentContext,
    choose_context,
    decode_field,
    find_entry,
    load_kubeconfig,
)

_SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True)
class ExecPlugin:
    """A program that prints credentials."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = _EXEC_VERSIONS[0]
    install_hint: str = ""
    provide_cluster: bool = False


@dataclass(frozen=True)
class KubeConfig:
    """One server and one user. Inline values win over files; files are read when a connection is made.

    A certificate and its key may be in one file that both fields name: then both are always renewed together.
    """

    server: str
    ca: bytes = b""
    ca_file: str = ""
    insecure: bool = False
    tls_server_name: str = ""
    certificate: bytes = field(default=b"", repr=False)
    certificate_file: str = ""
    key: bytes = field(default=b"", repr=False)
    key_file: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    plugin: ExecPlugin | None = None
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    namespace: str = "default"


def read_kubeconfig(
    kubeconfig: str | bytes | Mapping[str, Any], context: str = "", *, folder: str | Path = ""
) -> KubeConfig:
    """The server and user of `context`, or of the current context when it is empty.

    Paths in the kubeconfig are relative to `folder`, as they are for kubectl to the folder of the file.
    Refused with what is wrong; the message never contains a credential.
    """
    try:
        values = kubeconfig if isinstance(kubeconfig, Mapping) else load_kubeconfig(kubeconfig)
        name = choose_context(values, context)
        context_settings = find_entry(values, CONTEXTS, name)
        where = f"context {name!r}"
        cluster_name = _get_text(context_settings, "cluster", where)
        user_name = _get_text(context_settings, "user", where)
        cluster = find_entry(values, CLUSTERS, cluster_name)
        user = find_entry(values, USERS, user_name) if user_name else {}
    except NoCurrentContext:
        raise Refused("the kubeconfig has no current context: name one") from None
    except KubeconfigError as error:
        raise Refused(f"the kubeconfig cannot be used: {error}") from None
    return KubeConfig(
        **_parse_cluster(cluster, f"cluster {cluster_name!r}", Path(folder)),
        **_parse_user(user, f"user {user_name!r}", Path(folder)),
        namespace=_get_text(context_settings, "namespace", where) or "default",
    )


def in_cluster_config(
    account: str | Path = _SERVICE_ACCOUNT_FOLDER, env: Mapping[str, str] | None = None
) -> KubeConfig:
    """The API server of the cluster this process runs in, as its pod's service account. Refused outside a cluster."""
    env = os.environ if env is None else env
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    account = Path(account)
    token, ca = account / "token", account / "ca.crt"
    if not host or not port:
        raise Refused("not inside a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
    if not token.exists() or not ca.exists():
        raise Refused(f"not inside a cluster: no service account is mounted at {account}")
    namespace_file = account / "namespace"
    return KubeConfig(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca_file=str(ca),
        token_file=str(token),
        namespace=namespace_file.read_text().strip() if namespace_file.exists() else "default",
    )


def _parse_cluster(cluster: Mapping[str, Any], where: str, folder: Path) -> dict[str, Any]:
    server = _get_text(cluster, "server", where).rstrip("/")
    parts = urlsplit(server)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise Refused(f"{where}: server is not an http or https URL")
    if parts.username or parts.password:
        raise Refused(f"{where}: the server URL carries a credential; put it under users")
    if _get_text(cluster, "proxy-url", where):
        raise Refused(f"{where}: proxy-url is not supported")
    insecure = _get_flag(cluster, "insecure-skip-tls-verify", where)
    ca = _decode_inline(cluster, "certificate-authority-data", where)
    ca_file = "" if ca else _resolve_file(cluster, "certificate-authority", where, folder)
    if insecure and (ca or ca_file):
        raise Refused(
            f"{where}: certificate authority and insecure-skip-tls-verify exclude each other"
        )
    return {
        "server": server,
        "ca": ca,
        "ca_file": ca_file,
        "insecure": insecure,
        "tls_server_name": _get_text(cluster, "tls-server-name", where),
    }


def _parse_user(user: Mapping[str, Any], where: str, folder: Path) -> dict[str, Any]:
    for unsupported_key in ("auth-provider", "username", "password"):
        if user.get(unsupported_key):
            raise Refused(
                f"{where}: {unsupported_key} is not supported; use a certificate, a token or exec"
            )
    certificate = _decode_inline(user, "client-certificate-data", where)
    key = _decode_inline(user, "client-key-data", where)
    certificate_file = (
        "" if certificate else _resolve_file(user, "client-certificate", where, folder)
    )
    key_file = "" if key else _resolve_file(user, "client-key", where, folder)
    if bool(certificate or certificate_file) != bool(key or key_file):
        raise Refused(f"{where}: a client certificate and its key come together")
    # As kubectl does: the file wins, because it can be renewed.
    token_file = _resolve_file(user, "tokenFile", where, folder)
    groups = user.get("as-groups") or ()
    if not isinstance(groups, list | tuple):
        raise Refused(f"{where}: as-groups is not a list")
    return {
        "certificate": certificate,
        "certificate_file": certificate_file,
        "key": key,
        "key_file": key_file,
        "token": "" if token_file else _get_text(user, "token", where),
        "token_file": token_file,
        "plugin": _parse_plugin(user["exec"], where, folder) if user.get("exec") else None,
        "impersonate_user": _get_text(user, "as", where),
        "impersonate_groups": tuple(str(group) for group in groups),
    }


def _parse_plugin(settings: Any, where: str, folder: Path) -> ExecPlugin:
    if not isinstance(settings, Mapping):
        raise Refused(f"{where}: exec is not a mapping")
    command = _get_text(settings, "command", where)
    version = _get_text(settings, "apiVersion", where)
    if not command:
        raise Refused(f"{where}: exec has no command")
    if version not in _EXEC_VERSIONS:
        raise Refused(f"{where}: exec speaks {version!r}; known are {', '.join(_EXEC_VERSIONS)}")
    if _get_text(settings, "interactiveMode", where) == "Always":
        raise Refused(f"{where}: exec wants a terminal (interactiveMode Always), and there is none")
    # As kubectl does: with a slash it is a path, without one it is looked up on PATH.
    if "/" in command:
        command = str(folder / command)
    env = {
        str(entry["name"]): str(entry.get("value") or "")
        for entry in settings.get("env") or ()
        if isinstance(entry, Mapping) and entry.get("name")
    }
    return ExecPlugin(
        command=command,
        args=tuple(str(arg) for arg in settings.get("args") or ()),
        env=env,
        api_version=version,
        install_hint=_get_text(settings, "installHint", where).strip(),
        provide_cluster=_get_flag(settings, "provideClusterInfo", where),
    )


def _get_text(settings: Mapping[str, Any], name: str, where: str) -> str:
    value = settings.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused(f"{where}: {name} is not a text")
    return value


def _get_flag(settings: Mapping[str, Any], name: str, where: str) -> bool:
    value = settings.get(name) or False
    if not isinstance(value, bool):
        raise Refused(f"{where}: {name} is neither true nor false")
    return value


def _decode_inline(settings: Mapping[str, Any], name: str, where: str) -> bytes:
    try:
        return decode_field(settings, name)
    except KubeconfigError as error:
        raise Refused(f"{where}: {error}") from None


def _resolve_file(settings: Mapping[str, Any], name: str, where: str, folder: Path) -> str:
    path = _get_text(settings, name, where)
    return str(folder / path) if path else ""
