"""One simulated data centre for several hubs: its own process, durable, with faults and counts.

`boatyard.twin.process` starts it; `boatyard.twin.client` calls it, as the `sim` drivers do.
"""
