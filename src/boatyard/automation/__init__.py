"""Runs the roles and playbooks of templates: the port (`port.py`) and its drivers (`drivers/`)."""

DRIVERS: dict[str, str] = {
    "local": "boatyard.automation.drivers.local.driver:LocalAutomation",
    "eda": "boatyard.automation.drivers.eda.driver:EdaAutomation",
}

# Functions that refuse a hub's settings when the driver cannot use them. Pure; called when a hub is stored.
SETTING_CHECKS = {
    "eda": "boatyard.automation.drivers.eda.settings:read_settings",
}
