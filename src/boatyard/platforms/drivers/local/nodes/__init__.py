"""Simulated nodes: they register, send heartbeats and run pods as long as their machines in the twin run."""
