"""A process that replaced itself (exec) leaves two flight files: the later one is the process, the other has ended."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import pytest

from unstuck.observer.flights import read_folder
from unstuck.observer.gauge import Gauge, one_each, stat_fields
from unstuck.recorder import layout as at
from unstuck.supervise.flight_folder import FlightFolder


def write(folder: Path, name: str, *, pid: int = 0, steps: int = 0, code: int = 0, stack: int = 0) -> None:
    """A flight file of this very process, or of one that is not there."""
    fields = stat_fields(os.getpid())
    words = array("q", bytes(at.SIZE))
    words[at.W_MAGIC], words[at.W_VERSION] = at.MAGIC, at.VERSION
    words[at.W_PID], words[at.W_START_TICKS] = pid or os.getpid(), int(fields[19])
    words[at.W_CODE], words[at.W_STACK] = code or int(fields[23]), stack or int(fields[25])
    words[at.W_STEP], words[at.W_PROGRESS] = steps, 2 * steps
    words[at.W_SAMPLE] = words[at.W_WORKER] = words[at.W_RANK] = at.NONE
    (folder / (name + at.FLIGHT)).write_bytes(words.tobytes())


def stem(number: int = 0, pid: int = 0) -> str:
    ticks = stat_fields(os.getpid())[19].decode()
    return f"{pid or os.getpid()}-{ticks}" + (f".{number}" if number else "")


def test_the_later_file_is_the_process(tmp_path: Path) -> None:
    write(tmp_path, stem(), steps=3)
    flights = FlightFolder(str(tmp_path))
    flights.scan()
    assert [gauge.number for gauge in flights.living] == [0]
    write(tmp_path, stem(1))
    flights.scan()
    (now,) = flights.living
    (before,) = flights.dead
    assert (now.number, before.number) == (1, 0)
    assert (now.words[at.W_ENDED], before.words[at.W_ENDED]) == (0, 1)
    assert flights.gauge_of(os.getpid()) is now
    assert one_each([*flights.dead, now]) == [now]


def test_other_addresses_are_another_program(tmp_path: Path) -> None:
    """Without a later file: what it is now is not recorded."""
    write(tmp_path, stem(), stack=12345)
    gauge = Gauge.open(str(tmp_path / (stem() + at.FLIGHT)))
    assert gauge is not None
    assert (gauge.writer(), gauge.alive()) == ("replaced", False)
    flights = FlightFolder(str(tmp_path))
    flights.scan()
    assert not flights.living
    assert flights.dead[0].words[at.W_ENDED] == 1


def test_addresses_that_nobody_may_know(tmp_path: Path) -> None:
    write(tmp_path, stem(), stack=12345, code=1)
    gauge = Gauge.open(str(tmp_path / (stem() + at.FLIGHT)))
    assert gauge is not None
    assert gauge.alive()


@pytest.mark.parametrize(("first", "second", "steps"), [(4, 12, 12), (4, 0, 4), (0, 12, 12), (0, 0, 0)])
def test_one_flight_a_process_once_all_is_over(tmp_path: Path, first: int, second: int, steps: int) -> None:
    """The last, unless only the one before it trained; that one then has ended."""
    gone = 2**22 + 7
    write(tmp_path, stem(pid=gone), pid=gone, steps=first)
    write(tmp_path, stem(1, pid=gone), pid=gone, steps=second)
    write(tmp_path, stem(10, pid=gone), pid=gone)
    (flight,), _ = read_folder(tmp_path)
    assert (flight.step, flight.ended, flight.alive) == (steps, bool(first or second), False)
    flights = FlightFolder(str(tmp_path))
    flights.scan()
    assert len(flights.dead) == 3
    assert flights.gauge_of(gone) is next(gauge for gauge in flights.dead if gauge.number == 10)
