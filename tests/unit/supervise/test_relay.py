"""A Ctrl-C that comes when the run has just ended by itself still means: do not start it again."""

from __future__ import annotations

import signal
import threading

import pytest

from unstuck.supervise.relay import Relay


@pytest.mark.parametrize(
    ("number", "wanted"), [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGUSR1, False), (None, False)]
)
def test_a_signal_that_comes_too_late_is_noted(number: signal.Signals | None, wanted: bool) -> None:
    relay = Relay()
    relay.begin()
    if number is not None:
        signal.pthread_kill(threading.get_ident(), number)  # the test runner's own threads must not get it
    assert relay.end() is wanted
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & relay.taken
