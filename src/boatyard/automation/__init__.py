"""What runs a template's roles and playbooks: what we ask (`port.py`) and who answers (`drivers/`)."""

DRIVERS: dict[str, str] = {
    "local": "boatyard.automation.drivers.local.driver:LocalAutomation",
    "eda": "boatyard.automation.drivers.eda.driver:EdaAutomation",
}

# What refuses settings of a hub with which the driver could do nothing. Pure: asked when a hub is stored.
SETTING_CHECKS = {
    "eda": "boatyard.automation.drivers.eda.settings:read_settings",
}
