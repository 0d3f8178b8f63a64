"""Kinds of Kubernetes: what we ask of each (`port.py`) and who answers (`drivers/`)."""

DRIVERS = {
    "hosted": "boatyard.platforms.drivers.hosted.driver:HostedPlatform",
    "local": "boatyard.platforms.drivers.local.driver:LocalPlatform",
    "sim": "boatyard.platforms.drivers.sim:SimPlatform",
}
