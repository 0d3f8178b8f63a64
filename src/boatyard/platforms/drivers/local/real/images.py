"""Builds two container images from the machine's own static busybox, without any registry.

They are archives in the OCI layout, with the same bytes for the same busybox.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PAUSE_IMAGE = "localhost/pause:1"
BUSYBOX_IMAGE = "localhost/busybox:1"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The first process of every pod. When containers share their processes, orphans become its children: a shell
# that waits reaps them, a mere `sleep` would not.
_PAUSE_SCRIPT = "trap 'exit 0' TERM INT; while :; do sleep 2147483 & wait; done"


def write_images(busybox: Path, path: Path) -> None:
    """Writes one archive with both images. An existing one stays."""
    if path.exists():
        return
    layer = make_layer(busybox.read_bytes(), list_applets(busybox))
    commands = {PAUSE_IMAGE: ["/bin/sh", "-c", _PAUSE_SCRIPT], BUSYBOX_IMAGE: ["/bin/sh"]}
    draft = path.with_name(path.name + ".new")
    draft.write_bytes(make_archive(layer, commands))
    draft.replace(path)


def list_applets(busybox: Path) -> list[str]:
    completed = subprocess.run(
        [busybox, "--list"], capture_output=True, text=True, timeout=10, check=True
    )
    return sorted(set(completed.stdout.split()) - {"busybox"})


def is_static(program: Path) -> bool:
    """Whether an ELF program has no interpreter: alone in an image, only such a program starts."""
    try:
        content = program.read_bytes()
    except OSError:
        return False
    if content[:5] != b"\x7fELF\x02":
        return False
    order = "little" if content[5] == 1 else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(content[at : at + size], order)  # type: ignore[arg-type]

    headers, size, count = number(32, 8), number(54, 2), number(56, 2)
    return all(number(headers + size * index, 4) != 3 for index in range(count))


def make_layer(busybox: bytes, applets: Sequence[str]) -> bytes:
    """Returns a small root file system as a tar."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, mode in [("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)]:
            _add(tar, name, mode, kind=tarfile.DIRTYPE)
        _add(tar, "bin/busybox", 0o755, busybox)
        for applet in applets:
            _add(tar, f"bin/{applet}", 0o777, kind=tarfile.SYMTYPE, link="busybox")
        nobody = "nobody:x:65534:65534:nobody:/:/bin/false\n"
        _add(tar, "etc/passwd", 0o644, f"root:x:0:0:root:/root:/bin/sh\n{nobody}".encode())
        _add(tar, "etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n")
    return file.getvalue()


def make_archive(layer: bytes, commands: Mapping[str, Sequence[str]]) -> bytes:
    """Returns an OCI archive with one image per name in `commands`, all with the same layer."""
    blobs: dict[str, bytes] = {}
    manifests = [_image(blobs, name, layer, command) for name, command in commands.items()]
    index = {"schemaVersion": 2, "manifests": manifests}
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in {**files, **blobs}.items():
            _add(tar, name, 0o644, content)
    return file.getvalue()


def _image(
    blobs: dict[str, bytes], name: str, layer: bytes, command: Sequence[str]
) -> dict[str, Any]:
    digest = _put(blobs, layer)
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Cmd": list(command), "Env": [_PATH], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    kind = "application/vnd.oci.image.layer.v1.tar"
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _add_described_blob(blobs, config, "application/vnd.oci.image.config.v1+json"),
        "layers": [{"mediaType": kind, "digest": digest, "size": len(layer)}],
    }
    entry = _add_described_blob(blobs, manifest, "application/vnd.oci.image.manifest.v1+json")
    tag = name.rpartition(":")[2]
    annotations = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": tag,
    }
    return {**entry, "annotations": annotations}


def _add_described_blob(blobs: dict[str, bytes], content: Any, kind: str) -> dict[str, Any]:
    data = _json(content)
    return {"mediaType": kind, "digest": _put(blobs, data), "size": len(data)}


def _put(blobs: dict[str, bytes], data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    blobs[f"blobs/sha256/{digest}"] = data
    return f"sha256:{digest}"


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _add(
    tar: tarfile.TarFile,
    name: str,
    mode: int,
    content: bytes = b"",
    *,
    kind: bytes = tarfile.REGTYPE,
    link: str = "",
) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.type, entry.linkname, entry.size = mode, kind, link, len(content)
    tar.addfile(entry, io.BytesIO(content))
