"""A kubeconfig is read as kubectl reads it, and what is wrong with it is said without its secrets."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from boatyard.kube.config import in_cluster_config, read_kubeconfig
from boatyard.model.errors import Refused

SECRET = "s3cret-t0ken"


def kubeconfig(cluster: Any = None, user: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u"}},
            {"name": "two", "context": {"cluster": "d", "user": "u", "namespace": "home"}},
        ],
        "clusters": [
            {"name": "c", "cluster": cluster or {"server": "https://one.example:6443/"}},
            {"name": "d", "cluster": {"server": "https://two.example"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }


def test_the_current_context_is_taken_unless_one_is_named() -> None:
    text = yaml.safe_dump(kubeconfig())

    assert read_kubeconfig(text).server == "https://one.example:6443"
    assert read_kubeconfig(text).namespace == "default"
    named = read_kubeconfig(text, "two")
    assert (named.server, named.namespace) == ("https://two.example", "home")


def test_inline_data_and_files_are_both_understood() -> None:
    cluster = {
        "server": "https://one.example",
        "certificate-authority": "ca.crt",
        "tls-server-name": "api.example",
    }
    user = {
        "client-certificate-data": b64encode(b"cert").decode(),
        "client-key": "/keys/key.pem",
        "tokenFile": "token",
    }

    config = read_kubeconfig(kubeconfig(cluster, user), folder="/home/me/.kube")

    assert config.ca_file == "/home/me/.kube/ca.crt"
    assert config.certificate == b"cert"
    assert config.key_file == "/keys/key.pem"
    assert config.token_file == "/home/me/.kube/token"
    assert config.tls_server_name == "api.example"


def test_an_exec_plugin_is_understood() -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "bin/login",
        "args": ["--cluster", "one"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "get it\n",
        "provideClusterInfo": True,
    }

    found = read_kubeconfig(kubeconfig(user={"exec": plugin}), folder="/k").plugin

    assert found is not None
    assert found.command == "/k/bin/login"
    assert found.args == ("--cluster", "one")
    assert found.env == {"A": "b"}
    assert found.provide_cluster


@pytest.mark.parametrize(
    "broken, said",
    [
        pytest.param("[", "YAML", id="not YAML"),
        pytest.param("just a text", "not a kubeconfig", id="not a mapping"),
        pytest.param({}, "current context", id="empty"),
        pytest.param(kubeconfig(contexts={}), "context", id="contexts of the wrong shape"),
        pytest.param(kubeconfig(**{"current-context": "x"}), "'one', 'two'", id="unknown context"),
        pytest.param(kubeconfig(clusters=[]), "cluster 'c'", id="unknown cluster"),
        pytest.param(kubeconfig(users=[]), "user 'u'", id="unknown user"),
        pytest.param(kubeconfig({"server": "one:6443"}), "server", id="no URL"),
        pytest.param(kubeconfig({"server": f"https://a:{SECRET}@b"}), "URL", id="password in URL"),
        pytest.param(
            kubeconfig({"server": "https://a", "proxy-url": "http://p"}), "proxy", id="a proxy"
        ),
        pytest.param(
            kubeconfig(
                {
                    "server": "https://a",
                    "insecure-skip-tls-verify": True,
                    "certificate-authority": "x",
                }
            ),
            "exclude",
            id="insecure and a CA",
        ),
        pytest.param(kubeconfig(user={"token": 7}), "token", id="token is no text"),
        pytest.param(kubeconfig(user={"client-key-data": f"{SECRET}!"}), "base64", id="not base64"),
        pytest.param(
            kubeconfig(user={"client-key-data": "QUJD"}), "together", id="key without certificate"
        ),
        pytest.param(kubeconfig(user={"password": SECRET}), "password", id="a password"),
        pytest.param(kubeconfig(user={"auth-provider": {"name": "x"}}), "exec", id="old plugins"),
        pytest.param(
            kubeconfig(user={"exec": {"command": "x", "apiVersion": "v1alpha1"}}),
            "v1alpha1",
            id="exec of an old version",
        ),
        pytest.param(
            kubeconfig(
                user={
                    "exec": {
                        "command": "x",
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "interactiveMode": "Always",
                    }
                }
            ),
            "terminal",
            id="exec that wants a terminal",
        ),
    ],
)
def test_what_is_wrong_is_said_without_secrets(broken: Any, said: str) -> None:
    with pytest.raises(Refused) as refused:
        read_kubeconfig(broken)

    assert said in str(refused.value)
    assert SECRET not in repr(refused.value)


def test_a_line_that_is_not_yaml_is_not_quoted() -> None:
    with pytest.raises(Refused) as refused:
        read_kubeconfig(f"token: {SECRET}: {SECRET}")

    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_nothing_secret_is_shown() -> None:
    user = {
        "token": SECRET,
        "client-certificate-data": b64encode(SECRET.encode()).decode(),
        "client-key-data": b64encode(SECRET.encode()).decode(),
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "x",
            "args": [SECRET],
            "env": [{"name": "A", "value": SECRET}],
        },
    }

    assert SECRET not in repr(read_kubeconfig(kubeconfig(user=user)))


def test_inside_a_cluster_the_service_account_is_used(tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "namespace").write_text("home\n")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    config = in_cluster_config(tmp_path, env)

    assert config.server == "https://[fd00::1]:443"
    assert config.namespace == "home"
    assert config.token_file == str(tmp_path / "token")


def test_outside_of_a_cluster_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="KUBERNETES_SERVICE_HOST"):
        in_cluster_config(tmp_path, {})
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(Refused, match="no service account"):
        in_cluster_config(tmp_path, env)


@pytest.mark.parametrize("server", ["https://me:pw@one.example", "https://me@one.example"])
def test_an_address_carries_no_credential(server: str) -> None:
    with pytest.raises(Refused):
        read_kubeconfig(kubeconfig({"server": server}))


def test_a_file_with_a_token_wins_over_the_token_because_it_is_renewed() -> None:
    config = read_kubeconfig(kubeconfig(user={"token": SECRET, "tokenFile": "/run/token"}))

    assert (config.token, config.token_file) == ("", "/run/token")
