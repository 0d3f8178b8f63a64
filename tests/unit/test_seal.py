"""Who may read the key that seals secrets: its owner, and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from boatyard.ledger.seal import Seal
from boatyard.model.errors import Refused


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o660, 0o644, 0o777])
def test_a_seal_key_that_group_or_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "seal.key"
    Seal.load_or_create(path)
    path.chmod(mode)

    with pytest.raises(Refused):
        Seal.load_or_create(path)


def test_a_new_seal_key_is_readable_by_its_owner_only_and_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "seal.key"

    first = Seal.load_or_create(path)

    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o400)
    assert Seal.load_or_create(path).key_id == first.key_id
