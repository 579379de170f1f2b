"""Ctrl-C while a search is under way: ends it after the next batch, and breaks into nothing but waiting."""

from __future__ import annotations

import signal
import threading

LINGER = 1.0
"""Seconds after Ctrl-C in which the next batch may come."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a batch is waited for. No `except Exception` of a data set may swallow it."""


class Patience:
    """Ctrl-C is noted, and ends the search after the next batch. Only if that does not come, or at the second Ctrl-C,
    it breaks into the waiting; never into anything else, where it would leave something open."""

    def __init__(self) -> None:
        self.stopped = self.waiting = False
        self._again: threading.Timer | None = None

    def interrupt(self, *_: object) -> None:
        """The handler of SIGINT."""
        if self.stopped:
            if self.waiting:
                raise Interrupted
            return
        self.stopped = True
        main = threading.main_thread().ident or 0
        self._again = threading.Timer(LINGER, signal.pthread_kill, (main, signal.SIGINT))
        self._again.daemon = True
        self._again.start()

    def end(self) -> None:
        if self._again is not None:
            self._again.cancel()
