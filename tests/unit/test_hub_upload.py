"""One context of a kubeconfig is sent, with the files it names; programs and other people's credentials are not."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from boatyard.client.hub_kubeconfig import flatten_kubeconfig
from boatyard.kube.config import read_kubeconfig
from boatyard.model.errors import Refused
from boatyard.resources.hubs import kubeconfigs
from tests.support.control_plane import Authority
from tests.support.kubeconfigs import SECRET, SERVER, kubeconfig

EXEC = {"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}}


def test_files_go_along(tmp_path: Path) -> None:
    authority = Authority("hub")
    certificate, key = authority.issue("me")
    for name, content in (("ca", authority.pem), ("crt", certificate), ("key", key)):
        (tmp_path / name).write_bytes(content)
    text = kubeconfig(
        cluster={"certificate-authority": "ca"},
        user={"token": None, "client-certificate": "crt", "client-key": str(tmp_path / "key")},
    )

    sent = flatten_kubeconfig(text, "", tmp_path)

    assert kubeconfigs.read_summary(sent).violations == ()
    config = read_kubeconfig(sent)
    assert (config.ca, config.certificate, config.key) == (authority.pem, certificate, key)


def test_a_token_in_a_file_goes_along(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("abc\n")

    sent = flatten_kubeconfig(kubeconfig(user={"token": None, "tokenFile": "t"}), "", tmp_path)

    assert read_kubeconfig(sent).token == "abc"


def test_what_is_inside_wins_over_files(tmp_path: Path) -> None:
    inside = base64.b64encode(Authority("a").pem).decode()
    text = kubeconfig(
        cluster={"certificate-authority": "gone", "certificate-authority-data": inside}
    )

    assert kubeconfigs.read_summary(flatten_kubeconfig(text, "", tmp_path)).violations == ()


def test_only_the_context_that_is_named_is_sent() -> None:
    text = kubeconfig(
        users=[
            {"name": "u", "user": {"token": SECRET}},
            {"name": "v", "user": {"token": "hers"}},
        ],
        contexts=[
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "y", "context": {"cluster": "c", "user": "v"}},
        ],
    )

    sent = flatten_kubeconfig(text, "y", Path())

    assert read_kubeconfig(sent).token == "hers"
    assert read_kubeconfig(sent).server == SERVER
    assert SECRET.encode() not in sent
    assert len(yaml.safe_load(sent)["users"]) == 1


@pytest.mark.parametrize(
    "text, context, words",
    [
        pytest.param(kubeconfig(user=EXEC), "", "users[u].exec", id="a program"),
        pytest.param(
            kubeconfig(user={"auth-provider": {"name": "x"}}), "", "auth-provider", id="another"
        ),
        pytest.param(kubeconfig(), "z", "there is 'x'", id="no such context"),
        pytest.param(kubeconfig(current=""), "", "--context", id="no context"),
        pytest.param(kubeconfig(clusters=[]), "", "no cluster 'c'", id="no cluster"),
        pytest.param(kubeconfig(user={"client-key": "gone"}), "", "'gone' cannot", id="no file"),
        pytest.param(b"{", "", "cannot be read", id="not YAML"),
        pytest.param(b"[]", "", "is not a kubeconfig", id="a list"),
    ],
)
def test_what_cannot_be_sent_is_refused_here(text: bytes, context: str, words: str) -> None:
    with pytest.raises(Refused) as raised:
        flatten_kubeconfig(text, context, Path("/nowhere"))

    assert words in str(raised.value)
    assert raised.value.violations[0].remedy
    assert SECRET not in str(raised.value)
