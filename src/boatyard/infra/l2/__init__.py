"""Table of contents: the l2 drivers by name."""

DRIVERS = {
    "sim": "boatyard.infra.l2.drivers.sim:SimL2",
}
