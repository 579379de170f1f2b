"""Ctrl-C while a loader is scanned or tuned: ends that after the next batch, and interrupts nothing but waiting."""

from __future__ import annotations

import signal
import threading

LINGER_SECONDS = 1.0  # after Ctrl-C, in which the next batch may come


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a batch is waited for. No `except Exception` of a dataset may swallow it."""


class Patience:
    """Ctrl-C is noted (`stopped`), and takes effect after the next batch. Only if that does not come, or at the second
    Ctrl-C, it interrupts the waiting; never anything else, where it would leave something open."""

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
        self._again = threading.Timer(LINGER_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
        self._again.daemon = True
        self._again.start()

    def end(self) -> None:
        if self._again is not None:
            self._again.cancel()


class Attentive:
    """Ctrl-C goes to a Patience, not to the script; where the script has a handler of its own, that one stays."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._set = False

    def __enter__(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._patience.interrupt)
            self._set = True

    def __exit__(self, *_: object) -> None:
        self._patience.end()
        if self._set:
            signal.signal(signal.SIGINT, signal.default_int_handler)
