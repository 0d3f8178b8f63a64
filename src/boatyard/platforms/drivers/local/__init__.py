"""Real clusters as processes on this machine: a control plane without pods, and its nodes."""
