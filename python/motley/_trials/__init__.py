"""What is found out about a script at its start, by trying it on a few samples: whether its loss may be split, what a step leaves."""
