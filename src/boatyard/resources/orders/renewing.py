"""When the stored credentials of a cluster are fetched again before they expire. Called by the order reconciler.

The time is one of the order's facts, because the operator of a Kubernetes hub does not see an order's credentials.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from boatyard.pki.authority import ends_at
from boatyard.platforms.port import Access

# Platforms renew earlier than that, so by then new credentials are available.
ASK_BEFORE = timedelta(days=60)
ASK_EVERY = timedelta(hours=1)
_CERTIFICATE = re.compile(r"""client-certificate-data["']?:\s*["']?([A-Za-z0-9+/=]+)""")


def is_due(ask_again: str, now: datetime) -> bool:
    """Whether that time has come; False for an empty text."""
    return bool(ask_again) and datetime.fromisoformat(ask_again) <= now


def dated(access: Access, now: datetime) -> Access:
    """Returns the access with the time at which to fetch it again."""
    return replace(access, ask_again=ask_again_at(access.kubeconfig, now))


def ask_again_at(kubeconfig: str, now: datetime) -> str:
    """Two months before its client certificate expires; empty when it has no readable certificate.

    With a shorter validity it is fetched every hour: some platforms issue no longer ones.
    """
    match = _CERTIFICATE.search(kubeconfig)
    end = _end_of(match[1]) if match else None
    return max(end - ASK_BEFORE, now + ASK_EVERY).isoformat() if end else ""


@lru_cache(maxsize=1024)
def _end_of(certificate: str) -> datetime | None:
    try:
        return ends_at(base64.b64decode(certificate, validate=True))
    except ValueError:
        return None
