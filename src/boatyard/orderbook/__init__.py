"""Where a hub keeps its orders: the ledger itself, or (later) the hub's Kubernetes."""

DRIVERS = {
    "embedded": "boatyard.orderbook.drivers.embedded:EmbeddedOrderBook",
}
