"""Signs and verifies messages about a run of an external automation. Pure; used by the operator's callback server.

A message is signed with the run's own secret, over its timestamp and its body:

    X-Boatyard-Timestamp: 1767225600
    X-Boatyard-Signature: sha256=<hex of HMAC-SHA256(secret, timestamp + "." + body)>
"""

from __future__ import annotations

import hashlib
import hmac

TIMESTAMP_HEADER = "X-Boatyard-Timestamp"
SIGNATURE_HEADER = "X-Boatyard-Signature"
MAX_AGE_SECONDS = 300.0  # seconds; covers clock differences and the transfer

_METHOD = "sha256="
_LONGEST_TIMESTAMP = 12  # digits


def sign_message(secret: str, timestamp: str, body: bytes) -> str:
    """The value of the signature header."""
    message = timestamp.encode() + b"." + body
    return _METHOD + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def is_fresh(timestamp: str, now: float) -> bool:
    """Whether a message with this timestamp (seconds since 1970) is recent enough to be accepted."""
    is_number = (
        timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _LONGEST_TIMESTAMP
    )
    return is_number and abs(now - int(timestamp)) <= MAX_AGE_SECONDS


def is_signed(secret: str, timestamp: str, body: bytes, signature: str) -> bool:
    """Whether the signature was made with the secret. False when the secret is empty."""
    # Bytes: compare_digest refuses text that is not ASCII, which a header may contain.
    matches = hmac.compare_digest(
        sign_message(secret, timestamp, body).encode(), signature.encode()
    )
    return matches and bool(secret)
