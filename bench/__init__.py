"""What unstuck costs: one command, `python -m bench`."""
