"""Finds the settings of a DataLoader that feed the training fastest, by measuring them.

`setting_search` decides what to measure next, `race` and `trial` measure, `clone` builds the loaders that are measured.
All but `tune_page` may be injected into a script (see `takeover`): standard library and the user's own torch, relative
imports only.
"""
