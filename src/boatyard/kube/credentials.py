"""The credential that a request carries now: certificates, tokens, files that are renewed, exec plugins."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from boatyard.kube.config import ExecPlugin, KubeConfig
from boatyard.model.errors import Refused, Unavailable

Now = Callable[[], datetime]


@dataclass(frozen=True)
class Credential:
    """The token or certificate of a request, and the CA of the server. Secrets are left out of repr."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    ca: bytes = b""


def wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - credentials expire by the clock of the world outside


class CredentialSource:
    """The credential of one kubeconfig user, renewed when its files change or its plugin's output expires."""

    def __init__(self, config: KubeConfig, *, now: Now = wall_clock, plugin_seconds: float = 30.0):
        self._config = config
        self._now = now
        self._plugin_seconds = plugin_seconds
        self._files: dict[str, tuple[object, bytes]] = {}
        self._plugin_output: _PluginOutput | None = None
        self._lock = asyncio.Lock()

    async def get_credential(self) -> Credential:
        """The credential to send now. Refused when a file is missing, Unavailable while a plugin fails."""
        if self._config.plugin is not None:
            async with self._lock:  # many requests, one run of the plugin
                if self._plugin_output is None or self._now() >= self._plugin_output.renew_at:
                    self._plugin_output = await self._run_plugin(self._config.plugin)
        return self._build_credential()

    async def renew(self, rejected: Credential) -> bool:
        """Called once after a 401. True when there is now another credential than `rejected`."""
        # A caller that waited here while another one ran the plugin uses that output and does not run it again.
        if self._config.plugin is not None and await self.get_credential() == rejected:
            self._plugin_output = None
        self._files.clear()
        return await self.get_credential() != rejected

    def _build_credential(self) -> Credential:
        config, printed = self._config, self._plugin_output
        token = config.token or self._read_file(config.token_file).decode(errors="replace").strip()
        certificate = config.certificate or self._read_file(config.certificate_file)
        one_file = config.key_file == config.certificate_file and not config.certificate
        key = config.key or (b"" if one_file else self._read_file(config.key_file))
        if printed is not None:
            token = token or printed.token
            certificate, key = certificate or printed.certificate, key or printed.key
        ca = config.ca or self._read_file(config.ca_file)
        return Credential(token=token, certificate=certificate, key=key, ca=ca)

    def _read_file(self, path: str) -> bytes:
        """The content of a small file, cached until its inode, time or size changes, as those of renewed tokens do."""
        if not path:
            return b""
        try:
            file_stat = Path(path).stat()
            edition = file_stat.st_ino, file_stat.st_mtime_ns, file_stat.st_size
            cached = self._files.get(path)
            if cached is None or cached[0] != edition:
                cached = self._files[path] = (edition, Path(path).read_bytes())
        except OSError as error:
            raise Refused(f"cannot read {path}: {error.strerror}") from error
        return cached[1]

    async def _run_plugin(self, plugin: ExecPlugin) -> _PluginOutput:
        description = f"the credential plugin {plugin.command}"
        try:
            process = await asyncio.create_subprocess_exec(
                *(plugin.command, *plugin.args),
                env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": self._exec_info(plugin)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # Neither shown nor stored: the error output of such a program may quote a secret.
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            hint = f". {plugin.install_hint}" if plugin.install_hint else ""
            raise Refused(f"{description} cannot be run: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(self._plugin_seconds):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise Unavailable(f"{description} did not end in {self._plugin_seconds:g} s") from error
        finally:
            # Also when it has exited but left a child that holds its output open.
            if process.returncode is None or not _is_drained(process):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.returncode != 0:
            raise Unavailable(
                f"{description} ended with {process.returncode}; run it by hand to see what it says"
            )
        return _parse_plugin_output(output, plugin, description, self._now())

    def _exec_info(self, plugin: ExecPlugin) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if plugin.provide_cluster:
            config = self._config
            spec["cluster"] = {
                "server": config.server,
                "tls-server-name": config.tls_server_name,
                "insecure-skip-tls-verify": config.insecure,
                "certificate-authority-data": config.ca or self._read_file(config.ca_file),
            }
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()


@dataclass(frozen=True)
class _PluginOutput:
    token: str = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    renew_at: datetime


def _is_drained(process: asyncio.subprocess.Process) -> bool:
    return process.stdout is None or process.stdout.at_eof()


def _parse_plugin_output(
    output: bytes, plugin: ExecPlugin, description: str, now: datetime
) -> _PluginOutput:
    try:
        credential = msgspec.json.decode(output)
        status = credential["status"]
        is_valid = credential["kind"] == "ExecCredential" and isinstance(status, dict)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        is_valid, credential, status = False, {}, {}
    if not is_valid:
        # Raised outside the handler, so that no output is attached to the error as its cause.
        raise Refused(f"{description} printed something that is no ExecCredential")
    if credential.get("apiVersion") != plugin.api_version:
        raise Refused(
            f"{description} does not speak {plugin.api_version}, which the kubeconfig names"
        )
    certificate = str(status.get("clientCertificateData") or "").encode()
    key = str(status.get("clientKeyData") or "").encode()
    token = str(status.get("token") or "")
    if bool(certificate) != bool(key) or not (token or certificate):
        raise Refused(f"{description} printed neither a token nor a certificate with its key")
    return _PluginOutput(
        token, certificate, key, _renew_at(status.get("expirationTimestamp"), description, now)
    )


def _renew_at(expiration: Any, description: str, now: datetime) -> datetime:
    """Shortly before the credential expires: a tenth of its lifetime, at most a minute."""
    if not expiration:
        return datetime.max.replace(tzinfo=UTC)
    try:
        end = datetime.fromisoformat(str(expiration).replace("Z", "+00:00"))
        return end - min((end - now) / 10, timedelta(minutes=1))
    except (ValueError, TypeError):
        raise Refused(f"{description} printed an expirationTimestamp that is no time") from None
