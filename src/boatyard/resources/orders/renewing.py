"""Whether the access kept of a cluster ends soon. Asked by the reconciler on every look at a finished cluster.

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
_CERTIFICATE = re.compile(r"""client-certificate-data["']?:\s*["']?([A-Za-z0-9+/=]+)""")


def ends_soon(until: str, now: datetime) -> bool:
    """Is that moment less than two months away? No, when there is none."""
    return bool(until) and datetime.fromisoformat(until) - now < ASK_BEFORE


def dated(access: Access) -> Access:
    """The same, with the moment at which the client certificate in its kubeconfig ends, if that can be read."""
    return replace(access, until=access_until(access.kubeconfig))


def access_until(kubeconfig: str) -> str:
    """When the client certificate in it ends; empty when there is none that can be read."""
    found = _CERTIFICATE.search(kubeconfig)
    end = _end_of(found[1]) if found else None
    return end.isoformat() if end else ""


@lru_cache(maxsize=1024)
def _end_of(certificate: str) -> datetime | None:
    try:
        return ends_at(base64.b64decode(certificate, validate=True))
    except ValueError:
        return None
