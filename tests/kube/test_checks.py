"""Each question to a real cluster: yes when all is well, no for the fault it is there for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from boatyard.checks.drivers.kube import KubeChecks
from boatyard.checks.drivers.kube.api import matches_version
from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NODES
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done
from tests.kube.checking import (
    NAMES,
    SLOTS,
    ask,
    ask_until_done,
    reason,
    subject_of,
    things_left,
)
from tests.support.control_plane import Authority, ControlPlane, base64
from tests.support.kube_hub.running_pods import pods_running, put_node

# --- all is well ------------------------------------------------------------------------------


async def test_a_good_cluster_answers_every_question_with_yes(
    whole: ControlPlane, admin: KubeClient
) -> None:
    checks, subject = KubeChecks(), subject_of(whole)
    await checks.check_ready()
    async with pods_running(admin, SLOTS):
        for name in checks.list_names():
            await ask_until_done(name, subject)
            assert await things_left(admin) == [], name
    await checks.close()


async def test_one_call_is_enough_when_all_is_well(whole: ControlPlane, admin: KubeClient) -> None:
    async with pods_running(admin, SLOTS):
        for name in KubeChecks().list_names():
            assert await ask(name, subject_of(whole), trial_seconds=30.0) == Done()


async def test_many_who_ask_at_once_all_come_to_an_end(
    whole: ControlPlane, admin: KubeClient, leaves_nothing: None
) -> None:
    async with pods_running(admin, SLOTS):
        await asyncio.gather(
            *[ask_until_done(name, subject_of(whole)) for name in ("workload", "components") * 3]
        )


async def test_what_cannot_be_asked_is_told(whole: ControlPlane) -> None:
    with pytest.raises(Refused):
        await ask("no-such-question", subject_of(whole))
    with pytest.raises(Unavailable):
        await ask("nodes", replace(subject_of(whole), kubeconfig=""))
    with pytest.raises(Unavailable):
        await ask("nodes", replace(subject_of(whole), kubeconfig="no kubeconfig"))
    with pytest.raises(Unavailable):
        await ask("names", replace(subject_of(whole), resolve=None))
    assert await reason("nodes", subject_of(whole, whole.kubeconfig("jo", ()))) == "AskingRefused"
    assert "client-key-data" not in repr(subject_of(whole))


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers, said",
    [
        pytest.param({**NAMES, "api.one.example": "192.0.2.9"}, "NameWrong", id="elsewhere"),
        pytest.param({"api.one.example": "192.0.2.1"}, "NameUnknown", id="ingress not known"),
    ],
)
async def test_names(whole: ControlPlane, answers: dict[str, str], said: str) -> None:
    async def other(name: str) -> str | None:
        return answers.get(name)

    assert await reason("names", replace(subject_of(whole), resolve=other)) == said


# --- api --------------------------------------------------------------------------------------


async def test_an_api_that_is_down_is_found(whole: ControlPlane) -> None:
    subject = subject_of(whole)
    with whole.without("kube-apiserver"):
        assert await reason("api", subject) == "ApiNotAvailable"
        for other in ("certificates", "components", "nodes", "workload"):
            with pytest.raises(Unavailable):
                await ask(other, subject)
    await ask_until_done("api", subject)


async def test_a_wrong_version_is_found(whole: ControlPlane) -> None:
    assert await reason("api", replace(subject_of(whole), version="1.2.3")) == "VersionWrong"


@pytest.mark.parametrize(
    "wanted, served, so",
    [
        ("1.36.3", "v1.36.3", True),
        ("1.36.3", "v1.36.3+more", True),
        ("1.36.3", "v1.36.3-eks-1", True),
        ("1.36", "v1.36.3", True),
        ("1.3", "v1.36.3", False),
        ("1.36.3", "v1.36.30", False),
        ("1.36.3", "", False),
        ("", "v1.36.3", False),
    ],
)
def test_versions_fit(wanted: str, served: str, so: bool) -> None:
    assert matches_version(wanted, served) is so


async def test_an_api_that_does_not_know_us_is_found(whole: ControlPlane) -> None:
    assert await reason("api", subject_of(whole, whole.kubeconfig_for({}))) == "Unauthorized"


# --- certificates -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "days, said",
    [
        pytest.param(-0.5, "CertificateExpired", id="expired"),
        pytest.param(3, "CertificateExpiresSoon", id="soon"),
    ],
)
async def test_a_client_certificate_that_ends_is_found(
    whole: ControlPlane, days: float, said: str
) -> None:
    subject = subject_of(whole, whole.kubeconfig(days=days))
    assert await reason("certificates", subject) == said


@pytest.mark.parametrize(
    "name, said",
    [
        pytest.param("expired.example", "CertificateExpired", id="expired"),
        pytest.param("soon.example", "CertificateExpiresSoon", id="expires soon"),
        pytest.param("not-yet.example", "CertificateNotYetValid", id="not valid yet"),
        pytest.param("theirs.example", "CertificateNotTrusted", id="another authority"),
        pytest.param("nobody.example", "CertificateWrongName", id="another name"),
    ],
)
async def test_a_serving_certificate_that_is_not_good_is_found(
    whole: ControlPlane, name: str, said: str
) -> None:
    # The server shows to each name the certificate planted for it (conftest.py).
    kubeconfig = whole.kubeconfig()
    kubeconfig["clusters"][0]["cluster"]["tls-server-name"] = name
    assert await reason("certificates", subject_of(whole, kubeconfig)) == said


async def test_a_serving_certificate_that_is_not_good_ends_no_api_that_is(
    whole: ControlPlane,
) -> None:
    kubeconfig = whole.kubeconfig()
    kubeconfig["clusters"][0]["cluster"]["tls-server-name"] = "theirs.example"
    assert await reason("api", subject_of(whole, kubeconfig)) == "ApiNotAvailable"


async def test_an_authority_that_ends_is_found(whole: ControlPlane) -> None:
    kubeconfig = whole.kubeconfig()
    both = whole.ca.pem + Authority("old", days=2).pem
    kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"] = base64(both)
    subject = subject_of(whole, kubeconfig)
    assert await reason("certificates", subject) == "CertificateExpiresSoon"


async def test_a_client_certificate_of_another_authority_is_found(whole: ControlPlane) -> None:
    certificate, key = Authority("theirs").issue("admin", groups=["system:masters"])
    user = {"client-certificate-data": base64(certificate), "client-key-data": base64(key)}
    subject = subject_of(whole, whole.kubeconfig_for(user))
    assert await reason("certificates", subject) == "NotAccepted"


# --- nodes ------------------------------------------------------------------------------------


async def test_a_missing_node_is_found(whole: ControlPlane, admin: KubeClient) -> None:
    await put_node(admin, SLOTS[0])
    assert await reason("nodes", subject_of(whole)) == "NodeMissing"
    await put_node(admin, SLOTS[1], ready=False)
    assert await reason("nodes", subject_of(whole)) == "NodeNotReady"
    await put_node(admin, SLOTS[1])
    assert await ask("nodes", subject_of(whole)) == Done()
    for slot in SLOTS:
        await admin.delete(NODES, slot)
