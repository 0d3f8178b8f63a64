"""Parts of real nodes that need no node: names, images, settings, what a machine lacks."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

from boatyard.model.errors import Refused
from boatyard.platforms.drivers.local.real import images, requirements, settings
from boatyard.platforms.drivers.local.real.mounts import read_mounts
from boatyard.platforms.drivers.local.real.names import (
    node_name,
    parse_node,
    parse_slug,
    segment_name,
)
from boatyard.platforms.drivers.local.real.node import RealNode

PROGRAMS = requirements.RuntimePrograms(
    shim=Path("/usr/bin/containerd-shim-runc-v2"), runc=Path("/usr/sbin/runc"), plugins=Path("/cni")
)


def make_node(**given: object) -> RealNode:
    values: dict[str, object] = {
        "slug": "0a1b2c",
        "name": "compute-0",
        "number": 3,
        "address": "10.0.0.13/24",
        "pod_cidr": "10.128.3.0/24",
        "directory": Path("/data/compute-0"),
        "kubelet": Path("/assets/kubelet"),
        "kubeconfig": "{}",
        "ca": b"ca",
        "serving_cert": b"cert",
        "serving_key": b"key",
    }
    return RealNode(**{**values, **given})  # type: ignore[arg-type]


def test_a_name_says_whose_it_is() -> None:
    assert (parse_slug("by-0a1b"), parse_node("by-0a1b")) == ("0a1b", "")
    assert (parse_slug("by-0a1b-compute-0"), parse_node("by-0a1b-compute-0")) == (
        "0a1b",
        "compute-0",
    )
    assert (parse_slug("docker"), parse_node("docker-x")) == ("", "")


@pytest.mark.parametrize("slug", ["", "a-b", "a.b", "A", "../x", "a" * 33])
def test_a_segment_whose_name_could_be_another_clusters_node_is_refused(slug: str) -> None:
    with pytest.raises(Refused):
        segment_name(slug)


@pytest.mark.parametrize("name", ["", "-x", "x/y", "..", "X", "x y"])
def test_a_node_whose_name_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        node_name("0a1b", name)


def test_images_are_made_of_one_layer_and_named(tmp_path: Path) -> None:
    layer = images.make_layer(b"#!busybox", ["sh", "wget"])
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getmember("bin/busybox").mode == 0o755
        assert tar.getmember("bin/wget").linkname == "busybox"
        assert tar.getmember("tmp").mode == 0o1777
    archive = images.make_archive(layer, {"localhost/a:1": ["/bin/sh"], "localhost/b:2": ["x"]})
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        index = json.load(tar.extractfile("index.json") or io.BytesIO())
        names = [m["annotations"]["io.containerd.image.name"] for m in index["manifests"]]
        for entry in index["manifests"]:
            blob = tar.extractfile(f"blobs/{entry['digest'].replace(':', '/')}")
            assert blob is not None
            assert len(blob.read()) == entry["size"]
    assert names == ["localhost/a:1", "localhost/b:2"]
    assert archive.count(b"#!busybox") == 1
    assert archive == images.make_archive(
        layer, {"localhost/a:1": ["/bin/sh"], "localhost/b:2": ["x"]}
    )


def test_a_program_that_needs_others_is_not_static(tmp_path: Path) -> None:
    assert not images.is_static(Path(sys.executable).resolve())
    assert not images.is_static(tmp_path / "none")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert not images.is_static(script)


def test_only_secrets_and_settings_of_this_node_are_written() -> None:
    files = settings.render_files(make_node(), PROGRAMS, snapshotter="native")
    assert files["hostname"] == b"compute-0\n"
    assert b'snapshotter = "native"' in files["containerd/config.toml"]
    kubelet = json.loads(files["kubernetes/kubelet.json"])
    assert kubelet["cgroupRoot"] == "/by-0a1b2c-compute-0"
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}
    assert "kubernetes/kube-proxy.kubeconfig" not in files
    network = json.loads(files["cni/net.d/10-pods.conflist"])
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.128.3.0/24"}]]


def test_a_proxy_needs_its_program_and_its_kubeconfig() -> None:
    assert not make_node(kube_proxy=Path("/assets/kube-proxy")).has_proxy
    assert not make_node(proxy_kubeconfig="{}").has_proxy
    with_proxy = make_node(kube_proxy=Path("/assets/kube-proxy"), proxy_kubeconfig="{}")
    assert "kubernetes/kube-proxy.json" in settings.render_files(
        with_proxy, PROGRAMS, snapshotter="x"
    )


def test_labels_are_given_to_the_kubelet() -> None:
    arguments = settings.kubelet_arguments(make_node(labels={"b": "2", "a": "1"}))
    assert "--node-labels=a=1,b=2" in arguments


def test_what_is_missing_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "_PLUGIN_DIRECTORIES", (tmp_path,))
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 1000)
    said = "\n".join(requirements.list_missing())
    assert "root" in said
    for package in ("iproute2", "containerd", "runc", "containernetworking-plugins"):
        assert f"apt install {package}" in said
    assert "busybox-static" in said
    with pytest.raises(Refused, match="busybox-static"):
        requirements.check_requirements()


def test_where_things_are_mounted_is_read_as_the_kernel_writes_it() -> None:
    text = (
        "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "40 24 0:30 / /data/a\\040b\\134c rw - tmpfs none rw\n"
        "41 24 0:31 / /data/größe rw - overlay none rw\n"
    )
    assert list(read_mounts(text)) == [
        (Path("/"), "ext4"),
        (Path("/data/a b\\c"), "tmpfs"),
        (Path("/data/größe"), "overlay"),
    ]
