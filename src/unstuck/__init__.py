"""unstuck: why a PyTorch training stands still."""
