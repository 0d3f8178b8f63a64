"""Table of contents: the inventory drivers by name."""

DRIVERS = {
    "sim": "boatyard.infra.inventory.drivers.sim:SimInventory",
}
