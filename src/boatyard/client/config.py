"""Finds the server and the token: from flags, environment, `login`, or the local `up`."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boatyard.model.errors import BoatyardError

DEFAULT_PORT = 8000


class NotConfigured(BoatyardError):
    """No server is configured, or the configuration cannot be read."""


@dataclass(frozen=True)
class Target:
    """A server and how to connect to it. `address` is host:port."""

    address: str
    token: str = ""
    tls: bool = False
    ca_file: str = ""
    insecure: bool = False  # TLS without verification of the certificate
    source: str = ""  # where this was found, for people

    def __repr__(self) -> str:
        return f"Target({self.address!r}, tls={self.tls}, source={self.source!r})"  # no token


@dataclass(frozen=True)
class LocalServer:
    """The `boatyard up` that runs on this machine, as recorded in its file."""

    grpc: str
    rest: str
    token_file: str
    pid: int
    ca_file: str = ""


def find_target(
    *,
    address: str = "",
    token: str = "",
    ca_file: str = "",
    insecure: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Target:
    """The server to connect to: flags before environment before `login` before a local `up`.

    A token is only sent to the address it was saved for: a token of `login` or of `up` is left
    out when flags or environment name another address.
    """
    requested_address = address or environ.get("BOATYARD_ADDRESS", "")
    token = token or environ.get("BOATYARD_TOKEN", "")
    ca_file = ca_file or environ.get("BOATYARD_CA_FILE", "")
    targets = _read_login(environ), _find_local_target(environ)
    if requested_address:
        host, tls = parse_address(requested_address, tls=True if ca_file or insecure else None)
        saved_target = next(
            (target for target in targets if target and target.address == host), None
        )
        if saved_target and "://" not in requested_address:
            tls = tls or saved_target.tls
        return Target(
            address=host,
            token=token or (saved_target.token if saved_target else ""),
            tls=tls,
            ca_file=ca_file or (saved_target.ca_file if saved_target else ""),
            insecure=insecure or bool(saved_target and saved_target.insecure),
            source="--address" if address else "BOATYARD_ADDRESS",
        )
    default_target = next((target for target in targets if target), None)
    if default_target is None:
        raise NotConfigured(
            "no Boatyard to talk to; start one with `boatyard up`, "
            "or point to one with `boatyard login ADDRESS`"
        )
    return Target(
        address=default_target.address,
        token=token or default_target.token,
        tls=default_target.tls,
        ca_file=ca_file or default_target.ca_file,
        insecure=insecure or default_target.insecure,
        source=default_target.source,
    )


def parse_address(text: str, *, tls: bool | None = None) -> tuple[str, bool]:
    """host:port and whether to use TLS: by the scheme, else by `tls`, else TLS except on loopback."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text
    if scheme not in ("", "http", "https", "grpc", "grpcs"):
        raise NotConfigured(f"cannot use {text!r} as an address; write host:port")
    if scheme:
        tls = scheme in ("https", "grpcs")
    rest = rest.rstrip("/")
    host, port = _split_port(rest)
    if not host or "/" in host or any(character.isspace() for character in host):
        raise NotConfigured(f"cannot use {text!r} as an address; write host:port")
    if tls is None:
        tls = not _is_loopback(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}", tls


def _split_port(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not port:
        return host, DEFAULT_PORT
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise NotConfigured(f"cannot use {port!r} as a port; write a number from 1 to 65535")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- the saved login --------------------------------------------------------------------------


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_CONFIG_HOME") or _home_directory(environ) / ".config"
    return Path(base) / "boatyard" / "config.json"


def save_login(target: Target, environ: Mapping[str, str] = os.environ) -> Path:
    """Saves address and token for later commands, in a file that only its owner can read."""
    path = config_path(environ)
    _write_private_json(
        path,
        {
            "address": target.address,
            "token": target.token,
            "tls": target.tls,
            "ca_file": target.ca_file,
            "insecure": target.insecure,
        },
    )
    return path


def delete_login(environ: Mapping[str, str] = os.environ) -> bool:
    """Deletes the saved login; False when there was none."""
    try:
        config_path(environ).unlink()
    except FileNotFoundError:
        return False
    return True


def _read_login(environ: Mapping[str, str]) -> Target | None:
    path = config_path(environ)
    content = _read_json_object(path)
    if content is None:
        return None
    address = content.get("address")
    if not isinstance(address, str) or not address:
        raise NotConfigured(f"{path} names no address; run `boatyard login ADDRESS` again")
    return Target(
        address=address,
        token=str(content.get("token", "")),
        tls=bool(content.get("tls", False)),
        ca_file=str(content.get("ca_file", "")),
        insecure=bool(content.get("insecure", False)),
        source="login",
    )


# --- the local `up` ---------------------------------------------------------------------------


def local_server_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file that records this user's running `up` on this machine."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK | os.X_OK):
        return Path(runtime) / "boatyard" / "current.json"
    return _home_directory(environ) / ".local" / "state" / "boatyard" / "current.json"


def record_local_server(
    *,
    grpc: str,
    rest: str,
    token_file: str | Path,
    pid: int,
    ca_file: str | Path = "",
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Records this `up` as the one that commands find by themselves; the newest wins."""
    path = local_server_path(environ)
    _write_private_json(
        path,
        {
            "grpc": grpc,
            "rest": rest,
            "token_file": str(token_file),
            "pid": pid,
            "ca_file": str(ca_file),
        },
    )
    return path


def remove_local_server(*, pid: int, environ: Mapping[str, str] = os.environ) -> None:
    """Removes the file if this process wrote it; does nothing when there is none."""
    path = local_server_path(environ)
    content = _read_json_object(path)
    if content is not None and content.get("pid") == pid:
        path.unlink(missing_ok=True)


def read_local_server(environ: Mapping[str, str] = os.environ) -> LocalServer | None:
    """The local `up`, or None when there is none or its process is gone."""
    content = _read_json_object(local_server_path(environ))
    if content is None:
        return None
    try:
        current = LocalServer(
            grpc=str(content["grpc"]),
            rest=str(content.get("rest", "")),
            token_file=str(content.get("token_file", "")),
            pid=int(content["pid"]),
            ca_file=str(content.get("ca_file", "")),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return current if _is_alive(current.pid) else None


def _find_local_target(environ: Mapping[str, str]) -> Target | None:
    current = read_local_server(environ)
    if current is None:
        return None
    try:
        token = Path(current.token_file).read_text().strip() if current.token_file else ""
    except FileNotFoundError:
        token = ""
    except OSError as error:
        raise NotConfigured(
            f"cannot read the operator token of the local `boatyard up`: {error}; "
            "give a token of your own with BOATYARD_TOKEN"
        ) from error
    address, _ = parse_address(current.grpc)
    return Target(
        address=address,
        token=token,
        tls=bool(current.ca_file),
        ca_file=current.ca_file,
        source="the `boatyard up` on this machine",
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# --- claims of a token ------------------------------------------------------------------------


def decode_token_claims(token: str) -> dict[str, Any]:
    """The token's claims, not verified: only the server can do that."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


# --- files ------------------------------------------------------------------------------------


def write_private_file(path: Path, content: bytes, *, owner: tuple[int, int] | None = None) -> None:
    """Writes the file atomically, with mode 0600 from its first byte on.

    Its owner is our user, or the user and group in `owner`.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made 0600
    try:
        with os.fdopen(handle, "wb") as file:
            if owner is not None:
                os.fchown(handle, *owner)
            file.write(content)
            file.flush()
            os.fsync(handle)  # else a power cut could leave an empty file under the name
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _write_private_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private_file(path, (json.dumps(content, indent=2) + "\n").encode())


def _read_json_object(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NotConfigured(f"cannot read {path}: {error}; remove it or log in again") from error
    if not isinstance(content, dict):
        raise NotConfigured(f"{path} is not a JSON object; remove it or log in again")
    return content


def _home_directory(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()
