"""Kinds of Kubernetes: what we ask of each (`port.py`) and who answers (`drivers/`)."""

DRIVERS = {
    "sim": "boatyard.platforms.drivers.sim:SimPlatform",
}
