"""Table of contents: the l3 drivers by name."""

DRIVERS = {
    "sim": "boatyard.infra.l3.drivers.sim:SimL3",
}
