"""Kinds of Kubernetes: the port (`port.py`) and its drivers (`drivers/`)."""

DRIVERS = {
    "hosted": "boatyard.platforms.drivers.hosted.driver:HostedPlatform",
    "local": "boatyard.platforms.drivers.local.driver:LocalPlatform",
    "sim": "boatyard.platforms.drivers.sim:SimPlatform",
}

# Functions that refuse hub settings with which the driver could not work. Pure; called when a hub is stored.
SETTING_CHECKS = {
    "hosted": "boatyard.platforms.drivers.hosted.settings:check_hub_defaults",
}
