"""Where a hub keeps its orders: the ledger itself, or the hub's Kubernetes."""

DRIVERS = {
    "embedded": "boatyard.orderbook.drivers.embedded:EmbeddedOrderBook",
    "kube": "boatyard.orderbook.drivers.kube.book:KubeOrderBook",
}
