"""A keeper whose certificates live for a minute and a half; run by `python -m`."""

from __future__ import annotations

import sys
from datetime import timedelta

from boatyard.pki.authority import Authority
from boatyard.platforms.drivers.local import certificates, server

LIFE, RENEWED_BEFORE = timedelta(seconds=100), timedelta(seconds=50)

if __name__ == "__main__":
    Authority.issue.__kwdefaults__["life"] = LIFE
    certificates.RENEW_BEFORE = RENEWED_BEFORE
    sys.exit(server.main())
