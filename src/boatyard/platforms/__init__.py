"""Kinds of Kubernetes: what we ask of each (`port.py`) and who answers (`drivers/`)."""

DRIVERS = {
    "local": "boatyard.platforms.drivers.local.driver:LocalPlatform",
    "sim": "boatyard.platforms.drivers.sim:SimPlatform",
}
