"""How much a run of a role may take, by the names of the kernel."""

from __future__ import annotations

from boatyard.automation.drivers.local.limits import MIB, RunLimits


def test_each_limit_is_the_kernels_of_that_name() -> None:
    limits = RunLimits(address_space=7 * MIB, file_size=5 * MIB, open_files=9, processes=3)

    assert limits.to_rlimits(own_user=True) == {
        "RLIMIT_AS": 7 * MIB,
        "RLIMIT_FSIZE": 5 * MIB,
        "RLIMIT_NOFILE": 9,
        "RLIMIT_CORE": 0,
        "RLIMIT_NPROC": 3,
    }
    # Counted by user: a bound for one run would be one for all who share its number.
    assert "RLIMIT_NPROC" not in limits.to_rlimits(own_user=False)
