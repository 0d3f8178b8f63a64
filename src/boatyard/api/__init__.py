"""The doors: gRPC and REST over one generic implementation, who is calling, and what they may."""
