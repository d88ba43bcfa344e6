"""Machines and their processes: devices, siblings, other machines that are invited, and what they lack of a script."""
