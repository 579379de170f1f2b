"""Goes through a whole dataset once: `unstuck scan`, `unstuck.scan(dataset)`.

All but `scan_result` may be injected into a script (see `takeover`): standard library and the user's own torch,
relative imports only.
"""
