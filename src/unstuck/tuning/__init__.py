"""Finds the settings of a DataLoader that feed the training fastest, by measuring them.

`search` decides what to measure next, `trial` measures, `clone` builds the loaders that are measured. All of it may be
injected into a script by `unstuck tune` (see `takeover`): standard library and the user's own torch, relative imports
only.
"""
