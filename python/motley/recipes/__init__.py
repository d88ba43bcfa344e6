"""Scripts that come with Motley: `motley train fashion-cnn` runs fashion_cnn.py of this folder, as it would run a script of the user's."""
