"""Runs Python calls and generators while it handles signals, until its standard input closes; then says how many."""

import select
import signal
import sys

handled = 0


def handle(*_):
    global handled
    handled += 1


def numbers(up_to):
    yield from range(up_to)


def work(depth):
    return sum(n for n in numbers(depth)) + (work(depth - 1) if depth else 0)


signal.signal(signal.SIGINT, handle)
signal.signal(signal.SIGTERM, handle)
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(20):
        work(3)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("handled", handled, flush=True)
