"""Checks of a finished cluster. Each driver is a folder with one check per file."""

DRIVERS = {
    "hosted": "boatyard.checks.drivers.hosted:HostedChecks",
    "kube": "boatyard.checks.drivers.kube:KubeChecks",
    "sim": "boatyard.checks.drivers.sim:SimChecks",
}
