"""Creates, stores and checks certificates."""
