"""What is waited for: batches, pickles, copies."""
