"""What runs a template's roles and playbooks: what we ask (`port.py`) and who answers (`drivers/`)."""

DRIVERS: dict[str, str] = {
    "local": "boatyard.automation.drivers.local.driver:LocalAutomation",
    "eda": "boatyard.automation.drivers.eda.driver:EdaAutomation",
}
