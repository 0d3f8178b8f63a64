"""What is due → its reconciler → one guarded write."""
