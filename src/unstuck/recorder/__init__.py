"""The recorder: runs inside the training, writes what happens into a flight file, and never gets in the way.

Every module but `reader`, `gauge` and `selftest` is injected: standard library and the user's own torch, relative
imports only.
"""
