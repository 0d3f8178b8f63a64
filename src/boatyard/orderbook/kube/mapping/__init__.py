"""An order as an object on a Kubernetes hub, and back. Pure; used by the order book `kube` and by the hub's queue."""
