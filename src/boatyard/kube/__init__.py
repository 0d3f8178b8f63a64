"""The only Kubernetes client in this code base: kubeconfig, requests, watches, and an informer on top of them."""
