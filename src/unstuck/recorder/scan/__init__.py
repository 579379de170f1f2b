"""Goes through a whole dataset: `unstuck scan`."""
