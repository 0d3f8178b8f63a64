"""The door on a Kubernetes hub: leads, carries out orders, and says how it is. See docs/contributing/operator.md."""
