"""Runs a script until its training loader is in use, then hands that loader to `scan` or `tune`.

`script` starts it and follows it from outside; the rest is injected: standard library and the user's own torch,
relative imports only.
"""
