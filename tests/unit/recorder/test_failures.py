"""What is written down of failures: exceptions in plain data, causes included, and what cannot be pickled."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from unstuck.recorder import guard
from unstuck.recorder.probes.death import errors, resources, unpicklable
from unstuck.recorder.records.deaths import Unpicklable


def raised(action: Any) -> BaseException:
    try:
        action()
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def test_an_error_tells_its_number_its_file_and_where_it_came_from() -> None:
    def load() -> None:
        try:
            os.stat("/no/such/file")
        except OSError as error:
            raise ValueError("bad shard") from error

    told = errors.describe(raised(load))
    assert (told.type, told.message) == ("ValueError", "bad shard")
    cause = told.chain[0]
    assert (cause.how, cause.errno, cause.files) == ("cause", errno.ENOENT, ["/no/such/file"])
    assert told.frames[0][2].endswith("load")
    assert told.frames[0][3] is True


def test_what_from_none_hides_is_told_as_hidden() -> None:
    def load() -> None:
        try:
            os.close(-1)
        except OSError:
            raise RuntimeError("give up") from None

    chain = errors.describe(raised(load)).chain
    assert (chain[0].how, chain[0].errno) == ("hidden", errno.EBADF)


def test_an_error_that_cannot_be_printed_does_not_stop_us() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def load() -> None:
        raise Odd

    assert errors.describe(raised(load)).message == ""


def _without_end(path: Path, held: list[int]) -> list[int]:
    while True:
        held.append(os.open(path, os.O_RDONLY))


def test_descriptors_are_counted_also_when_none_is_left(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    open_now = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 40, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            held.extend(_without_end(tmp_path, held))
        told = resources.descriptors()
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert told.open == told.limit
    assert told.kinds[str(tmp_path.parent)] == len(held)


def test_a_signal_handler_that_raises_inside_a_hook_is_no_fault_of_ours() -> None:
    def handler(*_: object) -> None:
        raise TimeoutError("of the script")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        fault = raised(lambda: signal.raise_signal(signal.SIGUSR1))
        assert isinstance(fault, TimeoutError)
        with pytest.raises(TimeoutError, match="of the script"):
            guard.off("a probe of this test", fault)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "a probe of this test" not in guard.OFF


class Data:
    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)


class SavesItself(Data):
    def __getstate__(self) -> dict[str, Any]:
        return {}


def _load(dataset: object, collate_fn: object) -> None: ...


def find(dataset: object, message: str = "", collate_fn: object = len) -> Unpicklable:
    process = Data(_target=_load, _args=(dataset, collate_fn), _kwargs={})
    return unpicklable.find(process, message) or Unpicklable()


def test_the_attribute_that_cannot_be_pickled_is_found() -> None:
    assert find(Data(a=1, lock=threading.Lock())).path == "dataset.lock"
    assert find(Data(parts=[Data(transform=lambda x: x)])).path == "dataset.parts[0].transform"
    assert find(Data(by={"x": (i for i in [0])})).path == "dataset.by['x']"
    with open(os.devnull) as file:
        assert find(Data(file=file)).what == "an open file"
    assert find(Data(), collate_fn=lambda batch: batch).path == "collate_fn"


def test_the_message_tells_several_apart_and_own_ways_of_pickling_are_respected() -> None:
    both = Data(fn=lambda x: x, lock=threading.Lock())
    assert find(both, "cannot pickle '_thread.lock' object").path == "dataset.lock"
    assert find(SavesItself(lock=threading.Lock())).path == ""
    assert find(Data(numbers=[1, 2], text="x")).path == ""
