"""What large messages to other processes hold: the same array again in each of them?

Looked at in some messages only, on the thread that sends them: a job of a pool is a tuple with the function and its
arguments, and a bound method brings its whole object along.
"""

from __future__ import annotations

import sys
import threading
from _weakref import ref
from time import monotonic_ns
from types import MethodType
from typing import Any

from ... import journal, objects, user_code
from ...hooks.messages import Messages, messages
from ...probe import Probe
from ...records import Site
from ...records.loaders import RepeatedPickles
from ..data import dataset_memory
from ..data.dataset_memory import Extent
from ..object_walk import ObjectWalk, held_by

MOST_OBJECTS, DEPTH, MOST_SECONDS = 1000, 8, 0.002  # of one message
MIN_SHARE = 0.5  # of a message, that one array makes up
PRINTED = 1 << 12  # bytes of it that are compared
MIN_TOLD = 16  # messages


class RepeatedPickle(Probe):
    name = "pickles"

    def forget(self) -> None:
        self._before: tuple[Any, bytes] | None = None  # the array in the last message looked at, weakly, and its print
        self._same = self._other = 0
        self._name, self._size = "", 0
        self._site: Site | None = None

    def message_pickled(self, thing: Any, sent: Messages) -> None:
        found = self._largest(thing, sent.bytes / sent.count)
        if found is None:
            self._other += 1
            return
        name, lies = found
        shown = dataset_memory.read(lies, PRINTED)
        known, before = self._before or (None, b"")
        same = known is not None and known() is lies.thing and shown == before
        self._same, self._other = self._same + same, self._other + (known is not None and not same)
        self._before = ref(lies.thing), shown
        self._name, self._size = name, lies.end - lies.begin
        main = threading.main_thread().ident or 0
        self._site = user_code.site_of(sys._current_frames().get(main)) or self._site
        if sent.count >= MIN_TOLD:
            self.last()

    def _largest(self, thing: Any, size: float) -> tuple[str, Extent] | None:
        """The largest array, if it is most of the message; by a name that a person knows."""
        largest: tuple[str, Extent] | None = None
        owner: tuple[str, str] | None = None
        for path, part in ObjectWalk(held_by, MOST_OBJECTS, DEPTH, MOST_SECONDS).over([("", thing)]):
            if type(part) is MethodType and owner is None:
                owner = f"{path}.__self__", objects.class_name(type(part.__self__))
            lies = dataset_memory.extent(part)
            if lies is not None and (largest is None or lies.end - lies.begin > largest[1].end - largest[1].begin):
                largest = path, lies
        if largest is None or largest[1].end - largest[1].begin < MIN_SHARE * size:
            return None
        path, lies = largest
        if owner is not None and path.startswith(owner[0]):
            return owner[1] + path[len(owner[0]) :], lies
        key = path[path.rfind("[") :]
        return (key if key.startswith("['") and key.endswith("]") else ""), lies

    def last(self) -> None:
        if self._same > self._other:
            journal.tell(
                RepeatedPickles(
                    name=self._name, size=self._size, line=self._site, messages=messages.count, bytes=messages.bytes,
                    sending=messages.seconds, seconds=(monotonic_ns() - messages.began) / 1e9,
                )
            )  # fmt: skip
