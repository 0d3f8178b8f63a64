"""The crash proof: kills workers at every write and effect, and compares what is left with an undisturbed run."""
