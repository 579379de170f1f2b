"""What is written down of failures: exceptions in plain data, causes included, and what cannot be pickled."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.unit.recorder.untouchable import OddDict, OddList, OddText, OddTuple, Slotted, Untouchable, watching
from tests.unit.recorder.written import written
from unstuck.recorder import attempts, guard
from unstuck.recorder import layout as at
from unstuck.recorder.probes.death import device_owners, resources, tracebacks, unpicklable
from unstuck.recorder.probes.death.failures import Failures
from unstuck.recorder.records.deaths import Owners, TensorsAlike, Unpicklable


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

    told = tracebacks.describe(raised(load))
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

    chain = tracebacks.describe(raised(load)).chain
    assert (chain[0].how, chain[0].errno) == ("hidden", errno.EBADF)


def test_an_error_that_cannot_be_printed_does_not_stop_us() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def load() -> None:
        raise Odd

    assert tracebacks.describe(raised(load)).message == ""


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


# --- what each event writes ----------------------------------------------------------------------------------


def test_each_event_is_one_record_that_can_be_read_back() -> None:
    probe = Failures()
    error = raised(lambda: os.stat("/no/such/file"))
    with written() as records:
        probe.sample_failed([3, 4], error)
        probe.error_handed_over(error)
        probe.error_handed_over(ValueError("of the start"))
        probe.workers_failed(error)
        probe.thread_failed(error, threading.current_thread())
        probe.left_by_exit(3, sys._getframe())
        probe.child_ended(77, -9)
        probe.process_failed(error)
    kinds = [type(record).__name__ for record in records]
    assert kinds == [
        "SampleFailed", "SampleFailed", "BatchFailed", "ThreadDied", "LeftByExit", "ChildEnded", "Died",
    ]  # fmt: skip
    assert records[1].starting
    assert (records[5].child, records[5].code) == (77, -9)
    died = records[-1]
    assert (died.raised.type, died.raised.files) == ("FileNotFoundError", ["/no/such/file"])
    assert died.measured.descriptors.limit > 0


def test_labels_outside_the_classes_are_read_from_the_frame_of_the_loss() -> None:
    target = torch.tensor([0, 2, 5, -100, 1])
    error = raised(lambda: torch.nn.functional.cross_entropy(torch.zeros(5, 3), target))
    with written() as records:
        Failures().process_failed(error)
    labels = records[0].labels
    assert (labels.classes, labels.wrong, labels.label, labels.place) == (3, 1, 5, 2)
    assert (labels.least, labels.most, labels.ignored) == (0, 5, -100)


def test_what_else_is_read_does_not_cost_the_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "off", lambda *_: None)
    monkeypatch.setattr(resources, "descriptors", lambda: 1 / 0)
    monkeypatch.setattr(tracebacks, "torch_state", lambda _: 1 / 0)
    with written() as records:
        Failures().process_failed(ValueError("x"))
    assert records[0].raised.message == "x"
    assert records[0].measured.descriptors is None


# --- nothing of the user's is run ----------------------------------------------------------------------------


def test_an_exception_of_the_users_is_only_printed() -> None:
    ran: list[str] = []

    class Odd(OSError):
        def __getattribute__(self, name: str) -> Any:
            ran.append(name)
            return super().__getattribute__(name)

        __cause__ = __traceback__ = filename = property(lambda _: ran.append("property"))

    def load() -> None:
        raise Odd(errno.ENOENT, "gone", "/a/b")

    try:
        load()
    except OSError as error:
        ran.clear()
        told = tracebacks.describe(error)
    assert (told.errno, told.files, told.message) == (errno.ENOENT, ["/a/b"], "[Errno 2] gone: '/a/b'")
    assert told.frames[0][2].endswith("load")
    assert ran == []


def test_paths_and_addresses_are_cut_and_not_asked() -> None:
    with watching() as ran:
        assert attempts.opened(Untouchable()) is None
        assert attempts.opened(OddText("/data/" + "x" * 10_000)) == "/data/" + "x" * (at.TARGET_SIZE - 6)
        assert attempts.connected_to((OddText("host"), 80)) == "host:80"
        assert attempts.connected_to(OddTuple((b"h" * 10_000, Untouchable()))) is not None
        assert attempts.connected_to(Untouchable()) is None
    assert ran == []
    assert attempts.opened(Path("/data/a")) == "/data/a"
    assert attempts.opened(b"/data/" + b"x" * 10_000) == b"/data/" + b"x" * (at.TARGET_SIZE - 6)
    assert attempts.opened(tracebacks.__file__) is None
    assert attempts.connected_to("/run/socket") == "/run/socket"


def test_what_cannot_be_pickled_is_found_beside_what_may_not_be_touched() -> None:
    odd = [Untouchable(), Slotted(), OddText("x"), OddList([1]), OddDict(a=1), Untouchable, {Untouchable(): 1}]
    with watching() as ran:
        assert find(Data(odd=odd, lock=threading.Lock())).path == "dataset.lock"
    assert ran == []


# --- who holds a device's memory -----------------------------------------------------------------------------


class Model(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(10, 10, bias=False)


def owners(*roots: Any) -> tuple[Owners, list[TensorsAlike]]:
    found = device_owners.Tensors(torch, "cpu")
    found.reach(roots)
    assert found.all_seen
    return found.sums()


def test_tensors_are_counted_by_owner_each_storage_once() -> None:
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    model.layer(torch.ones(1, 10)).sum().backward()
    optimizer.step()
    kept = [model.layer(torch.ones(5, 10)) for _ in range(100)]
    views = [torch.zeros(1000)] * 3
    sums, shapes = owners({"trainer": lambda: (model, optimizer, kept, views)}, views[0][:10])
    assert (sums.parameters, sums.gradients) == (400, 400)
    assert sums.optimizer == 2 * 400 + 4
    assert sums.others == 100 * 200 + 4000
    assert (shapes[0].shape, shapes[0].count, shapes[0].graph) == ([5, 10], 100, True)


def test_tensors_are_looked_for_in_the_frames_of_the_traceback() -> None:
    def step(batch: torch.Tensor) -> None:
        activations = batch * 2  # noqa: F841
        raise RuntimeError

    error = raised(lambda: step(torch.ones(123)))
    found = [thing for thing in device_owners.roots([error]) if type(thing) is torch.Tensor]
    assert [tensor.numel() for tensor in found if tensor.numel() == 123] == [123, 123]


def test_the_search_has_an_end_and_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [Untouchable(), OddList([torch.ones(1)]), OddDict(a=1), {Untouchable(): Slotted()}, Untouchable]
    with watching() as ran:
        owners(odd)
    assert ran == []
    monkeypatch.setattr(device_owners, "THINGS", 100)
    found = device_owners.Tensors(torch, "cpu")
    found.reach([[object() for _ in range(1000)]])
    assert not found.all_seen
