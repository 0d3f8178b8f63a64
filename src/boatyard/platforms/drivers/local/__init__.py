"""Real clusters as processes on this machine: a hosted control plane without pods, and its nodes."""
