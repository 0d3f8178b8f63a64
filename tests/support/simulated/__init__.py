"""The product in one process, on the twin and on stepped time. Start with `environment.py`."""
