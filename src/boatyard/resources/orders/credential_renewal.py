"""When the stored credentials of a cluster are fetched again before they expire. Called by the order reconciler.

The time is one of the order's facts, because the operator of a Kubernetes hub does not see an order's credentials.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from boatyard.pki.authority import read_expiry
from boatyard.platforms.port import ClusterAccess

# Platforms renew earlier than that, so by then new credentials are available.
RENEW_BEFORE = timedelta(days=60)
SHORTEST_RENEWAL_INTERVAL = timedelta(hours=1)
_CERTIFICATE = re.compile(r"""client-certificate-data["']?:\s*["']?([A-Za-z0-9+/=]+)""")


def is_renewal_due(ask_again: str, now: datetime) -> bool:
    """Whether that time has come; False for an empty text."""
    return bool(ask_again) and datetime.fromisoformat(ask_again) <= now


def with_renewal_time(access: ClusterAccess, now: datetime) -> ClusterAccess:
    """Returns the access with the time at which to fetch it again."""
    return replace(access, ask_again=compute_renewal_time(access.kubeconfig, now))


def compute_renewal_time(kubeconfig: str, now: datetime) -> str:
    """Two months before its client certificate expires; empty when it has no readable certificate.

    With a shorter validity it is fetched every hour: some platforms issue no longer ones.
    """
    match = _CERTIFICATE.search(kubeconfig)
    end = _get_certificate_expiry(match[1]) if match else None
    return max(end - RENEW_BEFORE, now + SHORTEST_RENEWAL_INTERVAL).isoformat() if end else ""


@lru_cache(maxsize=1024)
def _get_certificate_expiry(certificate: str) -> datetime | None:
    try:
        return read_expiry(base64.b64decode(certificate, validate=True))
    except ValueError:
        return None
