"""One simulated data centre for several hubs: its own process, durable, with faults and counts.

Start it with `boatyard.twin.process`, talk to it with `boatyard.twin.client`; `sim` drivers do.
"""
