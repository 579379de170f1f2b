"""The recorder: runs inside the training, writes what happens into a flight file, and never gets in the way.

Every module but `reader` is injected: standard library plus the user's own torch, relative imports only.
"""
