"""Where a hub keeps its orders: the ledger itself, or the hub's Kubernetes."""

DRIVERS = {
    "embedded": "boatyard.orderbook.embedded:EmbeddedOrderBook",
    "kube": "boatyard.orderbook.kube.book:KubeOrderBook",
}
