"""Converts orders to objects on a Kubernetes hub and back. Pure; used by the order book `kube` and the hub's queue."""
