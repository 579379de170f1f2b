"""What is in the batches, and what happens to it."""
