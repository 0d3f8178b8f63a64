"""Whether the access kept of a cluster ends soon. Asked by the reconciler on every look at a finished cluster."""

from __future__ import annotations

import base64
import re
from datetime import datetime, timedelta
from functools import lru_cache

from boatyard.pki.authority import ends_at

# Platforms renew earlier than that: by then there is another to be had.
ASK_BEFORE = timedelta(days=60)
# Found, not parsed: every finished order is looked at each minute.
_CERTIFICATE = re.compile(r"""client-certificate-data["']?:\s*["']?([A-Za-z0-9+/=]+)""")


def ends_soon(kubeconfig: str, now: datetime) -> bool:
    """Does a client certificate in it end within two months? No, when there is none that can be read."""
    found = _CERTIFICATE.search(kubeconfig)
    if found is None:
        return False
    end = _end_of(found[1])
    return end is not None and end - now < ASK_BEFORE


@lru_cache(maxsize=1024)
def _end_of(certificate: str) -> datetime | None:
    try:
        return ends_at(base64.b64decode(certificate, validate=True))
    except ValueError:
        return None
