"""The one Kubernetes client of the house: settings, requests, watches, and an informer on top of them."""
