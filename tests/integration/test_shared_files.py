"""Which open files processes share, asked of the kernel: real forks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from unstuck.observe.gauge import WORKER
from unstuck.observe.shared_files import same_file, shared_files
from unstuck.recorder import layout as at
from unstuck.supervise import sharing


@pytest.fixture
def family(tmp_path: Path) -> Iterator[tuple[int, list[int], dict[str, int]]]:
    """This process and two children, with files open in different ways."""
    for name in "abc":
        (tmp_path / name).write_bytes(bytes(100))
    kept = os.open(tmp_path / "a", os.O_RDONLY)
    anew = os.open(tmp_path / "b", os.O_RDONLY)
    log = os.open(tmp_path / "c", os.O_RDWR | os.O_APPEND)
    ready, tell = os.pipe()
    children = []
    for _ in range(2):
        pid = os.fork()
        if not pid:
            os.close(anew)
            assert os.open(tmp_path / "b", os.O_RDONLY) == anew
            os.write(tell, b"x")
            signal.pause()
        children.append(pid)
    for _ in children:
        os.read(ready, 1)
    yield os.getpid(), children, {"kept": kept, "anew": anew, "log": log}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for fd in (kept, anew, log, ready, tell):
        os.close(fd)


def test_one_open_file_and_two_of_the_same_path(family: tuple[int, list[int], dict[str, int]]) -> None:
    parent, (first, second), fds = family
    assert same_file(first, second, fds["kept"]) is True
    assert same_file(parent, first, fds["kept"]) is True
    assert same_file(first, second, fds["anew"]) is False
    assert same_file(first, second, 399) is None
    assert same_file(first, second, fds["kept"], machine="unheard-of") is None


def test_only_what_can_be_read_and_is_one(family: tuple[int, list[int], dict[str, int]]) -> None:
    parent, children, fds = family
    os.lseek(fds["kept"], 42, os.SEEK_SET)
    found = {file.fd: file for file in shared_files(parent, children, 1.0)}
    assert fds["kept"] in found
    assert found[fds["kept"]].pids == tuple(sorted((parent, *children)))
    assert found[fds["kept"]].offsets == (42,)
    assert fds["anew"] not in found
    assert fds["log"] not in found


class Written:
    def __init__(self, pid: int, parent: int) -> None:
        self.pid = pid
        self.words = [0] * at.WORDS_END
        self.words[at.W_ROLE], self.words[at.W_FORKED], self.words[at.W_PPID] = WORKER, 1, parent


def test_looks_become_rarer_and_new_workers_are_looked_at_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    flights = SimpleNamespace(open={"1": Written(11, 10), "2": Written(12, 10)})
    watched = sharing.Sharing(flights)  # type: ignore[arg-type]
    looks: list[float] = []
    monkeypatch.setattr(watched, "_look", lambda *about: looks.append(about[-1]))
    for tick in range(200):
        watched.tick(tick / 2)
    assert looks == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]
    for start in range(20):
        flights.open = {"1": Written(100 + start, 10), "2": Written(200 + start, 10)}
        watched.tick(100.0 + start)
    assert len(looks) < 20
