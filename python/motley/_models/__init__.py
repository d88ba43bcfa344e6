"""Models: their tensors as flat vectors, passes over several groups, the built-in ones, TorchScript, and weights in files."""
