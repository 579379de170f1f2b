"""What the stacks of torch's own loader say: worker, batch, sample, and whom main waits for."""

from __future__ import annotations

import pytest

from tests.unit.attach.stacks import IDLE, POLLS, SITE, USER, WAITS, frame, look, process, thread, worker_frames
from unstuck.attach.inferred import flight_of, loader_work, phase_of, with_numbers
from unstuck.model import Frame
from unstuck.observer.torch_files import is_index, loader_locals

GET = frame("/home/me/data.py", "Clips.__getitem__", 12)


def test_worker_at_a_sample() -> None:
    work = loader_work(thread(GET, *worker_frames(5, 17, worker=3, count=8)))
    assert (work.worker, work.workers, work.batch, work.sample) == (3, 8, 17, 5)
    assert work.fetching
    assert not work.collating


def test_comprehension_without_a_frame_of_its_own_as_in_python_3_12() -> None:
    fetch = frame(
        SITE + "torch/utils/data/_utils/fetch.py",
        "_MapDatasetFetcher.fetch",
        54,
        arguments=(("possibly_batched_index", "[4, 5]"), ("idx", "5")),
    )
    assert loader_work(thread(GET, fetch)).sample == 5


def test_keys_that_are_no_numbers() -> None:
    inner = frame(SITE + "torch/utils/data/_utils/fetch.py", "<listcomp>", 54, arguments=(("idx", "'cat/17'"),))
    assert loader_work(thread(GET, inner)).sample_key == "cat/17"


def test_worker_loop_in_two_frames_as_later_torch_has_it() -> None:
    base = (("worker_id", "3"), ("num_workers", "8"), ("task_id", "17"))
    inner = frame(IDLE.file, "_base_worker_loop", 300, arguments=base)
    outer = frame(IDLE.file, "_process_worker_loop", 400, arguments=(("worker_id", "3"), ("num_workers", "8")))
    fetch = worker_frames(5, 17)[:2]
    work = loader_work(thread(GET, *fetch, inner, outer))
    assert (work.worker, work.batch, work.sample) == (3, 17, 5)
    values = [{"name": "task_id", "repr": "17"}, {"name": "data_index", "repr": "[1, 2]"}]
    assert loader_locals(IDLE.file, "_base_worker_loop", values) == (("task_id", "17"),)


def test_collating() -> None:
    work = loader_work(thread(*worker_frames(None, 17, code="return self.collate_fn(data)")))
    assert work.collating
    assert work.sample is None


def test_what_a_done_batch_left_in_the_frame_is_not_in_work() -> None:
    loop = frame(IDLE.file, "_worker_loop", 330, arguments=(("worker_id", "1"), ("idx", "9")))
    work = loader_work(thread(POLLS, loop, kind="poll"))
    assert (work.worker, work.batch, work.fetching) == (1, None, False)


def test_main_names_the_worker_it_waits_for() -> None:
    assert loader_work(thread(POLLS, WAITS, USER, kind="poll")).awaits_worker == 0


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        ((POLLS, WAITS, USER), "data"),
        ((frame(SITE + "torch/optim/adam.py", "Adam.step"), USER), "optimizer"),
        ((frame(SITE + "torch/autograd/graph.py", "_engine_run_backward"), USER), "backward"),
        ((frame(SITE + "torch/_tensor.py", "Tensor.__format__"), USER), "between"),
        ((USER,), "between"),
    ],
)
def test_phases(frames: tuple[Frame, ...], phase: str) -> None:
    assert phase_of(thread(*frames), worker=False) == phase


def test_numbers_go_into_the_look_and_the_flight() -> None:
    main = process(1, thread(POLLS, WAITS, USER, kind="poll"))
    worker = process(2, thread(GET, *worker_frames(5, 17)), role="worker", ppid=1)
    seen = with_numbers(look(10.0, main, worker))
    assert seen.processes[1].worker == 0
    flight = flight_of(seen.processes[1], now=10.0, since=4.0)
    assert flight is not None
    assert (flight.sample, flight.batch, flight.phase, flight.inferred) == (5, 17, "fetch", True)
    assert flight.read_at - flight.sample_since == 6.0


def test_rank_of_mp_spawn() -> None:
    wrap = frame(SITE + "torch/multiprocessing/spawn.py", "_wrap", 90, arguments=(("i", "1"),))
    assert with_numbers(look(1.0, process(5, thread(USER, wrap), role="rank"))).processes[0].rank == 1


def test_helpers_have_no_flight() -> None:
    assert flight_of(process(9, thread(USER), role="helper"), 1.0, 0.0) is None


def test_only_the_loaders_own_numbers_are_kept() -> None:
    values = [
        {"name": "worker_id", "repr": "3"},
        {"name": "dataset", "repr": "<Clips at 0x7f>"},
        {"name": "idx", "repr": "17"},
        {"name": "np_seed", "repr": "[1, 2]"},
    ]
    assert loader_locals(IDLE.file, "_worker_loop", values) == (("worker_id", "3"), ("idx", "17"))
    assert loader_locals("/home/me/data.py", "_worker_loop", values) == ()
    assert loader_locals(IDLE.file, "pin_memory", values) == ()


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("17", True),
        ("-1", True),
        ("'a/b'", True),
        ("[1, 2, 3]", True),
        ("[1, 2, ...]", True),
        ("[]", True),
        ("<Tensor at 0x7f>", False),
        ("{'secret': 1}", False),
        ("'" + "x" * 100 + "'", False),
    ],
)
def test_an_index_is_a_number_a_key_or_a_list_of_numbers(text: str, index: bool) -> None:
    assert is_index(text) is index
