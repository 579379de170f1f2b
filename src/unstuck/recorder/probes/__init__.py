"""What is measured, by family: loaded at the first event that wants it."""
