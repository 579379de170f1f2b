"""Libraries that write the training loop: one file each, imported only where the library already is."""
