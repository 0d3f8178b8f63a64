"""When the access kept of a cluster, which ends one day, is asked for again. Used by the reconciler at each look.

The moment stands among the order's facts: whoever carries out an order on a Kubernetes hub
does not see its credentials.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from boatyard.pki.authority import ends_at
from boatyard.platforms.port import Access

# Platforms renew earlier than that: by then there is another to be had.
ASK_BEFORE = timedelta(days=60)
ASK_EVERY = timedelta(hours=1)
_CERTIFICATE = re.compile(r"""client-certificate-data["']?:\s*["']?([A-Za-z0-9+/=]+)""")


def is_due(ask_again: str, now: datetime) -> bool:
    """Has that moment come? No, when there is none."""
    return bool(ask_again) and datetime.fromisoformat(ask_again) <= now


def dated(access: Access, now: datetime) -> Access:
    """The same, with the moment to ask for it again."""
    return replace(access, ask_again=ask_again_at(access.kubeconfig, now))


def ask_again_at(kubeconfig: str, now: datetime) -> str:
    """Two months before its client certificate ends; empty when it has none that can be read.

    One that ends sooner is asked for each hour: some platforms give out no others.
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
