"""The order book in the hub's own Kubernetes: ClusterOrders, Claims, Leftovers. See docs/contributing/operator.md."""
