"""How things fail: samples, batches, processes."""
