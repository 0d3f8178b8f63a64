"""What runs a template's roles and playbooks: what we ask (`port.py`) and who answers (`drivers/`)."""

DRIVERS: dict[str, str] = {
    "eda": "boatyard.automation.drivers.eda.driver:EdaAutomation",
}
