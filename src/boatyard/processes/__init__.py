"""Child processes identified by a mark in their environment, and calls between our processes over unix sockets."""
