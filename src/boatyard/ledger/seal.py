"""Encrypts secrets at rest and event ids, with one key file. Called by the ledger and by the API."""

from __future__ import annotations

import base64
import contextlib
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from boatyard.model.errors import Refused

KEY_BYTES = 32
SEALED_PREFIX = "seal:v1:"
_NONCE_BYTES = 12
_EVENT_ID_MARK = b"boat"
_SALT_BYTES = 4


class Seal:
    """Seals texts with AES-256-GCM, bound to the place (kind, id, path) where they are stored."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise Refused(f"a seal key has {KEY_BYTES} bytes, this one has {len(key)}")
        self._aead = AESGCM(_derive_key(key, b"documents"))
        self._block = Cipher(algorithms.AES(_derive_key(key, b"event ids")), modes.ECB())
        self.key_id = _derive_key(key, b"key id").hex()[:16]

    @classmethod
    def from_bytes(cls, key: bytes) -> Seal:
        return cls(key)

    @classmethod
    def load_or_create(cls, path: Path) -> Seal:
        """Loads the key in this file, and creates it on first use. Refused when others may read the file."""
        with contextlib.suppress(FileExistsError):
            _create_key(path)
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            raise Refused(
                f"the seal key {path} may be read by others (mode {mode:o}); run: chmod 600 {path}"
            )
        return cls(path.read_bytes())

    def seal(self, text: str, place: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._aead.encrypt(nonce, text.encode(), place.encode())
        return SEALED_PREFIX + base64.b64encode(nonce + sealed).decode()

    def unseal(self, sealed: str, place: str) -> str:
        """Unseals a text. Refused when it was sealed for another place or with another key."""
        try:
            packed = base64.b64decode(sealed.removeprefix(SEALED_PREFIX), validate=True)
            text = self._aead.decrypt(packed[:_NONCE_BYTES], packed[_NONCE_BYTES:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise Refused(f"the secret at {place} was not sealed with this key") from error
        return text.decode()

    def event_id(self, seq: int) -> str:
        """The event's public id. It does not reveal how many events there are."""
        return self._encrypt_seq(seq, bytes(_SALT_BYTES))

    def resume_id(self, seq: int) -> str:
        """An id to resume after, different on each call even for the same `seq`.

        A caller who could compare them would learn, by asking again and again, when other tenants are active.
        """
        return self._encrypt_seq(seq, os.urandom(_SALT_BYTES))

    def _encrypt_seq(self, seq: int, salt: bytes) -> str:
        encryptor = self._block.encryptor()
        plain = seq.to_bytes(8) + _EVENT_ID_MARK + salt
        return (encryptor.update(plain) + encryptor.finalize()).hex()

    def event_seq(self, event_id: str) -> int:
        """The number in an id of `event_id` or `resume_id`. Refused when it is neither."""
        try:
            decryptor = self._block.decryptor()
            plain = decryptor.update(bytes.fromhex(event_id)) + decryptor.finalize()
        except ValueError:
            plain = b""
        if len(plain) != 16 or plain[8:-_SALT_BYTES] != _EVENT_ID_MARK:
            raise Refused(f"{event_id[:64]!r} is not an event id of this service")
        return int.from_bytes(plain[:8])


def _derive_key(key: bytes, purpose: bytes) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=b"boatyard " + purpose).derive(key)


def _create_key(path: Path) -> None:
    """Writes a new key completely or not at all, also in a crash. FileExistsError when there is one."""
    if path.exists():
        raise FileExistsError(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, os.urandom(KEY_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        os.link(draft, path)  # fails when another process was quicker: its key counts
    finally:
        draft.unlink()
