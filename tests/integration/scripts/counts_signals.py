"""Handles the signals named as arguments, says each one, and tells the counts when its standard input closes."""

import signal
import sys

names = sys.argv[1:]
counts = dict.fromkeys(names, 0)


def handle(number, _frame):
    name = signal.Signals(number).name
    counts[name] += 1
    print("got", name, flush=True)


for name in names:
    signal.signal(getattr(signal, name), handle)
print("ready", flush=True)
sys.stdin.read()
print("counts", counts, flush=True)
