"""Saves its work at Ctrl-C, which takes a second, and would be spoilt by a second Ctrl-C."""

import time

print("ready", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1.2)
    print("saved", flush=True)
    raise
