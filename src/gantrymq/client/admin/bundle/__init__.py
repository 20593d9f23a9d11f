"""The archive of `gantry debug bundle`, with secrets removed."""
