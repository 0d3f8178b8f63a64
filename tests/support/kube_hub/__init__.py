"""A Kubernetes hub: a real API server, operator, fake HyperShift and fault proxy. Start with `environment.py`."""
