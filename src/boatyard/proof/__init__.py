"""The crash proof, part by part: the worker that dies, the lane it dies in, and what is compared."""
