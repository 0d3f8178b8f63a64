"""A hub's kubeconfig is refused when it cannot be used, or would be used against the service itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from boatyard.kube.config import read_kubeconfig
from boatyard.resources.hubs import kubeconfigs
from tests.support.control_plane import Authority
from tests.support.kubeconfigs import SECRET, SERVER, account_token, inline, kubeconfig, pair

EXEC = {"command": "id", "apiVersion": "client.authentication.k8s.io/v1"}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(kubeconfig(), id="a token"),
        pytest.param(kubeconfig(user=pair()), id="a certificate and its key"),
        pytest.param(
            kubeconfig(cluster={"certificate-authority-data": inline(Authority("a").pem)}),
            id="an authority",
        ),
        pytest.param(
            kubeconfig(users=[{"name": "u", "user": {"token": "t"}}, {"name": "v", "user": 7}]),
            id="what other contexts use does not matter",
        ),
    ],
)
def test_what_is_taken_can_be_used(config: bytes) -> None:
    told = kubeconfigs.read_summary(config)

    assert told.violations == ()
    assert told.server == SERVER
    assert read_kubeconfig(config).server == SERVER


@pytest.mark.parametrize(
    "config, field",
    [
        pytest.param(b"token: [" + SECRET.encode(), "cannot be read", id="not YAML"),
        pytest.param(b"- " + SECRET.encode(), "not a kubeconfig", id="a list"),
        pytest.param(b"", "not a kubeconfig", id="empty"),
        pytest.param(b"{}", "current-context", id="no context"),
        pytest.param(kubeconfig(current="y"), "no context 'y'", id="another context"),
        pytest.param(kubeconfig(clusters=[]), "no cluster 'c'", id="no cluster"),
        pytest.param(kubeconfig(users=None), "no user 'u'", id="no user"),
        pytest.param(kubeconfig(contexts=["x", 3]), "no context", id="contexts that are none"),
        pytest.param(kubeconfig(user={"exec": EXEC}), "users['u'].user.exec", id="a program"),
        pytest.param(
            kubeconfig(user={"tokenFile": "/etc/t"}), "user.tokenFile", id="a token in a file"
        ),
        pytest.param(
            kubeconfig(user={"client-certificate": "c"}), "user.client-certificate:", id="its file"
        ),
        pytest.param(kubeconfig(user={"client-key": "k"}), "user.client-key:", id="a key's file"),
        pytest.param(
            kubeconfig(cluster={"certificate-authority": "ca"}),
            "clusters['c'].cluster.certificate-authority:",
            id="an authority's file",
        ),
        pytest.param(kubeconfig(user={"token": None}), "no credentials", id="nobody"),
        pytest.param(kubeconfig(user={"token": 7}), "user.token", id="a token that is a number"),
        pytest.param(
            kubeconfig(user={"username": "a", "password": SECRET}), "user.password", id="password"
        ),
        pytest.param(
            kubeconfig(user={"auth-provider": {"name": "oidc"}}), "user.auth-provider", id="oidc"
        ),
        pytest.param(kubeconfig(user=pair(other=True)), "client-key-data", id="another's key"),
        pytest.param(
            kubeconfig(user={**pair(), "client-key-data": None}), "come together", id="no key"
        ),
        pytest.param(
            kubeconfig(user={**pair(), "client-key-data": "!"}), "not base64", id="not base64"
        ),
        pytest.param(
            kubeconfig(user={**pair(), "client-certificate-data": "eA=="}),
            "client-certificate-data: is no certificate",
            id="no certificate",
        ),
        pytest.param(
            kubeconfig(cluster={"certificate-authority-data": "eA=="}),
            "certificate-authority-data: is no certificate",
            id="no authority",
        ),
        pytest.param(kubeconfig(cluster={"proxy-url": "http://p"}), "proxy-url", id="a proxy"),
        pytest.param(kubeconfig("http://hub.example"), "without TLS", id="in clear"),
        pytest.param(
            kubeconfig(cluster={"insecure-skip-tls-verify": True}), "skip-tls", id="trusts anybody"
        ),
        pytest.param(kubeconfig("file:///etc"), "not an address", id="a file"),
        pytest.param(kubeconfig("https://hub:x"), "not an address", id="a port that is none"),
        pytest.param(kubeconfig(cluster={"server": None}), "not an address", id="no address"),
        pytest.param(
            kubeconfig(f"https://a:{SECRET}@hub.example"), "carries a credential", id="in the URL"
        ),
        pytest.param(kubeconfig("https://169.254.169.254"), "no API server", id="metadata service"),
        pytest.param(kubeconfig("https://[fe80::1]"), "no API server", id="this link only"),
        pytest.param(kubeconfig("https://0.0.0.0"), "no API server", id="nowhere"),
    ],
)
def test_what_is_refused_names_the_field_and_tells_no_secret(config: bytes, field: str) -> None:
    told = kubeconfigs.read_summary(config)

    words = " ".join(str(violation) for violation in told.violations)
    assert field in words
    assert all(one.path == "spec.kubeconfig" and one.remedy for one in told.violations)
    assert SECRET not in words


def test_everything_wrong_is_told_at_once() -> None:
    told = kubeconfigs.read_summary(
        kubeconfig("ftp://x", user={"exec": EXEC, "tokenFile": "f"}, cluster={"proxy-url": "p"})
    )

    assert len(told.violations) == 4


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(kubeconfig("http://127.0.0.1:8001"), id="in clear"),
        pytest.param(kubeconfig(cluster={"insecure-skip-tls-verify": True}), id="trusts anybody"),
    ],
)
def test_who_says_so_may_go_without_trust(config: bytes) -> None:
    assert kubeconfigs.read_summary(config, insecure=True).violations == ()


def test_another_context_may_be_chosen() -> None:
    config = kubeconfig(
        clusters=[
            {"name": "c", "cluster": {"server": SERVER}},
            {"name": "d", "cluster": {"server": "https://other.example"}},
        ],
        contexts=[
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "y", "context": {"cluster": "d", "user": "u"}},
        ],
    )

    assert kubeconfigs.read_summary(config, "y").server == "https://other.example"


END = datetime(2031, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "token, ends_at",
    [
        pytest.param(account_token(ends=END), END, id="a service account's"),
        pytest.param("opaque", None, id="one that does not say"),
        pytest.param("a.b.c", None, id="one that only looks like it"),
        pytest.param("e30.e30.e30", None, id="without an end"),
        pytest.param("e30.eyJleHAiOiAxZTk5OX0.e30", None, id="an end that is no time"),
    ],
)
def test_when_a_token_ends(token: str, ends_at: Any) -> None:
    assert kubeconfigs.read_summary(kubeconfig(token=token)).expires_at == ends_at


def test_when_a_certificate_ends() -> None:
    ends_at = kubeconfigs.read_summary(kubeconfig(user=pair(days=10))).expires_at

    assert ends_at is not None
    assert timedelta(days=9) < ends_at - datetime.now(UTC) < timedelta(days=11)


@pytest.mark.parametrize("field", ["exec", "tokenFile", "client-key"])
def test_a_hub_without_tls_runs_and_reads_nothing_here_either(field: str) -> None:
    value = EXEC if field == "exec" else "/etc/passwd"

    told = kubeconfigs.read_summary(kubeconfig(user={field: value}), insecure=True)

    assert any(f".user.{field}:" in violation.message for violation in told.violations)
