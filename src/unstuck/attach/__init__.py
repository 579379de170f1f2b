"""A training that nobody prepared, explained from outside: found, looked at for some seconds, and left as it was.

target ──▶ looks ──▶ inferred flights, standings ──▶ Case ──▶ the same rules ──▶ the page
"""
