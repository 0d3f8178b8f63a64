"""Simulated nodes: they register, heartbeat and run pods as the machines they stand for let them."""
