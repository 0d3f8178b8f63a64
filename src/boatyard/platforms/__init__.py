"""Kinds of Kubernetes: what we ask of each (`port.py`) and who answers (`drivers/`)."""

DRIVERS = {
    "hosted": "boatyard.platforms.drivers.hosted.driver:HostedPlatform",
    "local": "boatyard.platforms.drivers.local.driver:LocalPlatform",
    "sim": "boatyard.platforms.drivers.sim:SimPlatform",
}

# What refuses settings of a hub with which the driver could do nothing. Pure: asked when a hub is stored.
SETTING_CHECKS = {
    "hosted": "boatyard.platforms.drivers.hosted.settings:check_alone",
}
