"""The loops around a training step, read from its frames and source."""
