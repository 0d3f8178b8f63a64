"""Table of contents: the dns drivers by name."""

DRIVERS = {
    "sim": "boatyard.infra.dns.drivers.sim:SimDns",
}
