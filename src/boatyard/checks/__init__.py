"""Questions asked of a finished cluster. Each driver is a folder with one question per file."""

DRIVERS = {
    "hosted": "boatyard.checks.drivers.hosted:HostedChecks",
    "kube": "boatyard.checks.drivers.kube:KubeChecks",
    "sim": "boatyard.checks.drivers.sim:SimChecks",
}
