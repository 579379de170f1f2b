"""The right word for what a stack is doing."""

from __future__ import annotations

import pytest

from tests.unit.attach.stacks import FETCH, IDLE, POLLS, SITE, USER, WAITS, frame, process, thread, worker_frames
from unstuck.attach.activity import activity, worker_activity
from unstuck.model import Frame, Thread
from unstuck.observer.stack_samples import parse_raw

LIB = "/usr/lib/python3.11/"
CALL = frame(SITE + "torch/nn/modules/module.py", "Module._call_impl")
LINEAR = frame(SITE + "torch/nn/modules/linear.py", "Linear.forward")


@pytest.mark.parametrize(
    ("frames", "kind", "word"),
    [
        ((POLLS, WAITS, USER), "poll", "waiting for data"),
        (
            (frame("/home/me/d.py", "__getitem__"), frame(FETCH, "fetch"), WAITS, USER),
            "running",
            "loading data in the main",
        ),
        ((LINEAR, CALL, USER), "running", "forward pass"),
        ((LINEAR, CALL, frame("/home/me/t.py", "evaluate"), USER), "running", "validating (forward pass)"),
        ((POLLS, WAITS, frame("/home/me/t.py", "run_validation"), USER), "poll", "validating (waiting for data)"),
        ((frame(SITE + "torch/autograd/graph.py", "_engine_run_backward"), USER), "running", "backward pass"),
        ((frame(SITE + "torch/optim/sgd.py", "SGD.step"), USER), "running", "optimizer step"),
        ((frame(SITE + "torch/_inductor/compile_fx.py", "f"), CALL, USER), "running", "compiling"),
        ((frame(SITE + "torch/serialization.py", "_save"), USER), "file", "saving a checkpoint"),
        ((frame(SITE + "torch/serialization.py", "load"), USER), "file", "loading a checkpoint"),
        ((frame("<frozen importlib._bootstrap>", "_load"), USER), "running", "importing modules"),
        ((frame("/home/me/t.py", "tokenize_corpus", 9), USER), "running", "tokenising"),
        ((frame(SITE + "pandas/io/parsers/readers.py", "read_csv"), USER), "running", "reading data"),
        ((frame(LIB + "subprocess.py", "Popen.wait"), USER), "child", "waiting for a child process"),
        ((frame(LIB + "ssl.py", "read"), frame(LIB + "urllib/request.py", "urlopen"), USER), "socket", "downloading"),
        ((USER,), "running", "computing in its own code (train.py, main)"),
        ((frame(SITE + "torch/distributed/distributed_c10d.py", "barrier"), USER), "socket", "waiting for other ranks"),
        ((frame(LIB + "pdb.py", "interaction"), USER), "terminal-read", "at a debugger prompt"),
    ],
)
def test_words(frames: tuple[Frame, ...], kind: str, word: str) -> None:
    assert activity(thread(*frames, kind=kind)).startswith(word)


def test_a_test_inside_torch_is_no_validation() -> None:
    inner = frame(SITE + "torch/nn/functional.py", "_test")
    assert activity(thread(inner, CALL, USER)) == "forward pass"


def test_without_a_stack_the_kernel_has_the_word() -> None:
    assert activity(thread(kind="file-lock")) == "waiting for a file lock"
    assert "cannot be seen" in activity(None)


@pytest.mark.parametrize(
    ("stack", "word"),
    [
        (thread(*worker_frames(5, 3)), "making sample 5"),
        (thread(*worker_frames(None, 3)), "making a batch"),
        (thread(POLLS, IDLE, kind="poll"), "idle, nothing to do"),
        (thread(frame("<frozen importlib._bootstrap>", "_load")), "starting"),
    ],
)
def test_words_for_workers(stack: Thread, word: str) -> None:
    assert worker_activity(process(2, stack, role="worker")) == word


def test_raw_samples_say_which_thread_they_are_of() -> None:
    text = (
        "thread (7): MainThread;main (/home/me/a b.py:40);Adam.step (/x/site-packages/torch/optim/adam.py:248) 18\n"
        "thread (9): QueueFeederThread;run (/usr/lib/python3.11/threading.py:982) 40\n"
        "not a line of it\n"
    )
    sample, other = parse_raw(text, 7)
    assert (sample.main, sample.count) == (True, 18)
    assert (other.main, other.count) == (False, 40)
    assert [(f.file, f.line) for f in sample.frames] == [
        ("/x/site-packages/torch/optim/adam.py", 248),
        ("/home/me/a b.py", 40),
    ]
