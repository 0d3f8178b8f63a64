"""The player answering for the API servers of its clusters, asked by kubectl with their own kubeconfigs."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from tests.support.control_plane import free_port
from tests.support.kube_hub.fake_hypershift import Kubectl, eventually, playing
from tests.support.kube_hub.hypershift_tenant import HyperShiftTenant


def hosted(tenant: HyperShiftTenant, folder: Path, name: str = "c") -> Kubectl:
    """kubectl with the kubeconfig that the player has published for a cluster."""
    secret = tenant.kubectl.get("secret", f"{name}-admin-kubeconfig", tenant.name)
    assert secret is not None
    path = folder / f"{tenant.name}-{name}.kubeconfig"
    path.write_bytes(b64decode(secret["data"]["kubeconfig"]))
    path.chmod(0o600)
    return tenant.kubectl.elsewhere(path)


def test_a_hosted_api_server_answers_with_health_version_and_nodes(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    words = ("--pace", "instant", "--answer", f"127.0.0.1:{free_port()}")
    with playing(kubectl.kubeconfig, *words) as player:
        tenant = HyperShiftTenant(kubectl)
        tenant.order()
        tenant.until_ready()
        tenant.wait("hostedcluster:ClusterVersionAvailable", "c")
        inside = hosted(tenant, tmp_path)

        assert inside.run("get", "--raw", "/readyz").stdout == "ok"
        assert "v1.31.0" in inside.run("version").stdout
        nodes = inside.run("get", "--raw", "/api/v1/nodes").stdout
        assert "host-a0" in nodes
        assert "host-a1" in nodes

        # What is down does not answer; another player goes on where this one was.
        tenant.plant("hostedcluster", "c", "down")
        eventually(lambda: "is down" in inside.run("get", "--raw", "/readyz", check=False).stderr)
        tenant.free("hostedcluster", "c")
        player.end()
        player.start()
        eventually(lambda: inside.run("get", "--raw", "/readyz", check=False).stdout == "ok")


def test_one_clusters_token_is_of_no_use_with_another(kubectl: Kubectl, tmp_path: Path) -> None:
    words = ("--pace", "instant", "--answer", f"127.0.0.1:{free_port()}")
    with playing(kubectl.kubeconfig, *words):
        tenant = HyperShiftTenant(kubectl)
        tenant.order("c", replicas=1)
        tenant.order("d", replicas=1)
        tenant.until_ready("c")
        tenant.until_ready("d")
        mine = hosted(tenant, tmp_path, "c")
        crossed = mine.kubeconfig.read_text().replace(f"/{tenant.name}/c", f"/{tenant.name}/d")
        missing = mine.kubeconfig.read_text().replace(f"/{tenant.name}/c", f"/{tenant.name}/e")
        for number, text in enumerate((crossed, missing)):
            path = tmp_path / f"stolen-{number}"
            path.write_text(text)
            done = kubectl.elsewhere(path).run("get", "--raw", "/readyz", check=False)
            assert done.stdout == ""
            assert "Unauthorized" in done.stderr


def test_a_kubeconfig_follows_the_address(kubectl: Kubectl, tmp_path: Path) -> None:
    words = ("--pace", "instant", "--answer")
    with playing(kubectl.kubeconfig, *words, f"127.0.0.1:{free_port()}"):
        tenant = HyperShiftTenant(kubectl)
        tenant.order(replicas=1)
        tenant.until_ready()
        assert hosted(tenant, tmp_path).run("get", "--raw", "/livez").stdout == "ok"
    with playing(kubectl.kubeconfig, *words, f"127.0.0.1:{free_port()}"):
        eventually(
            lambda: (
                hosted(tenant, tmp_path).run("get", "--raw", "/livez", check=False).stdout == "ok"
            )
        )


@pytest.mark.parametrize("address", ["here", "127.0.0.1:", "127.0.0.1:99999", ":1"])
def test_an_address_that_is_none_is_told(kubectl: Kubectl, address: str) -> None:
    with (
        pytest.raises(AssertionError, match="no address"),
        playing(kubectl.kubeconfig, "--answer", address),
    ):
        pass
