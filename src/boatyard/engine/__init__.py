"""Takes objects that are due, calls their reconciler, and writes the result once, guarded by the lease."""
