"""How a training learns: losses, gradients, updates, owners."""
