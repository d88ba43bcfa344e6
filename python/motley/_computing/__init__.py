"""A worker's arithmetic, and what a device has of it in its own memory."""
