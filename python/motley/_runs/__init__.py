"""A run as its script sees it: epochs and their bodies, the runs of one script, and the lower doors."""
