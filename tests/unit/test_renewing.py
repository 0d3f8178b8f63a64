"""Whether the access kept of a cluster ends soon, read from whatever a platform gave."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from boatyard.pki.authority import CERTIFICATE_LIFETIME, Authority
from boatyard.platforms.drivers.local.certificates import make_kubeconfig
from boatyard.resources.orders.credential_renewal import (
    RENEW_BEFORE,
    SHORTEST_RENEWAL_INTERVAL,
    compute_renewal_time,
    is_renewal_due,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PEM = Authority.create("any", now=NOW).issue("admin", client=True, now=NOW)
LATE = NOW + CERTIFICATE_LIFETIME - RENEW_BEFORE
OURS = make_kubeconfig(server="https://x", name="web", user="admin", ca=b"ca", pem=PEM)
YAML = f"""users:
- name: admin
  user:
    client-certificate-data: {base64.b64encode(PEM.certificate).decode()}
"""


@pytest.mark.parametrize("kubeconfig", [OURS, YAML])
def test_an_access_is_asked_for_again_two_months_before_it_ends(kubeconfig: str) -> None:
    again = compute_renewal_time(kubeconfig, NOW)
    assert not is_renewal_due(again, LATE - timedelta(days=1))
    assert is_renewal_due(again, LATE)


def test_one_that_ends_soon_and_is_not_renewed_is_asked_for_each_hour() -> None:
    again = compute_renewal_time(OURS, LATE)
    assert not is_renewal_due(again, LATE + SHORTEST_RENEWAL_INTERVAL / 2)
    assert is_renewal_due(again, LATE + SHORTEST_RENEWAL_INTERVAL)


@pytest.mark.parametrize(
    "kubeconfig",
    [
        pytest.param("", id="none"),
        pytest.param("users: [{user: {token: abc}}]", id="a token"),
        pytest.param('{"client-certificate-data": "abc"}', id="no base64"),
        pytest.param('{"client-certificate-data": "YWJj"}', id="no certificate"),
    ],
)
def test_what_has_no_certificate_is_never_asked_for_again(kubeconfig: str) -> None:
    assert not is_renewal_due(compute_renewal_time(kubeconfig, NOW), LATE + CERTIFICATE_LIFETIME)
