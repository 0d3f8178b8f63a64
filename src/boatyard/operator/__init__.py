"""The operator on a Kubernetes hub: leads, carries out orders, serves probes. See docs/contributing/operator.md."""
