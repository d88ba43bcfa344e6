"""Samples and batches: what a script's DataLoader says, in the order that the head says."""
