"""Models: their tensors as flat vectors, passes over several groups, and weights in files."""
