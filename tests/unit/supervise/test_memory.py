"""Curves that stay short, a file that can be read back, cgroups read from text."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from unstuck.observer import cgroups, memory_file
from unstuck.recorder import cores
from unstuck.recorder import layout as at
from unstuck.supervise import memory_curves
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.memory_curves import Curve, GrowthRequests, MemoryCurves
from unstuck.supervise.step_trend import Series


def test_a_curve_spans_the_whole_life() -> None:
    curve = Curve()
    for number in range(10_000):
        curve.add(float(number), number, number)
    points = curve.all()
    assert len(points) <= memory_curves.POINTS + 2
    assert points[0][0] == 0
    assert points[-1][0] == 9999
    gaps = {round(later[0] - earlier[0]) for earlier, later in pairwise(points[:-1])}
    assert len(gaps) == 1, "evenly thinned"


def test_requests_come_while_it_grows_then_more_and_more_rarely() -> None:
    requests = GrowthRequests()
    requested = [tick for tick in range(2000) if requests.due(tick * 0.5, 300_000_000 + tick * 5_000_000)]
    assert requested[:6] == [0, 1, 2, 3, 4, 5]
    assert len(requested) < 40
    level = GrowthRequests()
    assert [tick for tick in range(200) if level.due(tick * 0.5, 300_000_000)] == [0]


def test_what_is_written_can_be_read_back(tmp_path: Path) -> None:
    watched = MemoryCurves(os.getpid(), FlightFolder(str(tmp_path)))
    for number in range(5):
        watched.tick(float(number))
    root, curves, groups = memory_file.read_back(str(tmp_path))
    assert root == os.getpid()
    assert [curve.pid for curve in curves] == [os.getpid()]
    assert curves[0].points[0].rss == watched.curves()[0].points[0].rss
    assert {group.path for group in groups} == {group.path for group in watched.groups()}
    assert all(group.pids == (os.getpid(),) for group in groups)


def test_a_steady_run_writes_next_to_nothing(tmp_path: Path) -> None:
    file = memory_file.MemoryFile(str(tmp_path), 1, 0, 10**9)
    for tick in range(1000):
        file.rss(1, tick * 0.5, 10**9 + tick % 7 * 1000, tick)
        file.flush()
    assert len((tmp_path / memory_file.NAME).read_text().splitlines()) == 4


def test_half_a_line_is_passed_over(tmp_path: Path) -> None:
    text = "boot x\nroot 7\nmachine 0 1000\ngroup 0 1 - 0 /a b/c\nin 7 0\nrss 7 1.0 100 3\nrss 7 2.0"
    (tmp_path / memory_file.NAME).write_text(text)
    root, curves, groups = memory_file.read_back(str(tmp_path))
    assert (root, len(curves[0].points)) == (7, 1)
    assert groups[1].path == "/a b/c"
    assert groups[1].kills == cgroups.UNREADABLE, "another start of the machine: its counters say nothing"
    assert memory_file.read_back(str(tmp_path / "none")) == (None, (), ())


def test_both_versions_of_cgroups(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (one / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (one / "memory.usage_in_bytes").write_text("100\n")
    (one / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    (two / "memory.max").write_text("5000\n")
    (two / "memory.current").write_text("4000\n")
    (two / "memory.peak").write_text("4900\n")
    (two / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n")
    first, second = cgroups.Group(str(one), 1), cgroups.Group(str(two), 2)
    assert (first.limit, first.usage, first.kills_before) == (None, 100, 3)
    assert (second.limit, second.usage, second.peak, second.kills()) == (5000, 4000, 4000, 1)
    (two / "memory.peak").write_text("5000\n")
    second.read_peak()
    assert second.peak == 5000, "it rose since we first looked"
    (two / "memory.max").write_text("max\n")
    assert cgroups.read_limit(str(two), 2) is None
    assert cgroups.read_kills(str(tmp_path), 2) == cgroups.UNREADABLE


def test_a_container_that_sees_only_its_own_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    mounts = f"35 31 0:32 /docker/abc {tmp_path} ro - cgroup cgroup rw,memory\n"
    monkeypatch.setattr(cores, "read_text", lambda path: mounts if path == "/proc/self/mountinfo" else "")
    assert cgroups.folders(1, "/docker/abc/inner") == [f"{tmp_path}/inner", str(tmp_path)]
    assert cgroups.folders(1, "/elsewhere") == [str(tmp_path)]
    assert cgroups.folders(2, "/docker/abc") == []


def test_membership_prefers_the_memory_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"/proc/1/cgroup": "4:cpu,memory:/job\n0::/unified\n", "/proc/2/cgroup": "0::/slice\n"}
    monkeypatch.setattr(cores, "read_text", lambda path: texts.get(path, ""))
    assert cgroups.membership(1) == (1, "/job")
    assert cgroups.membership(2) == (2, "/slice")
    assert cgroups.membership(3) is None


class Ring:
    """A flight file's ring of steps whose processor time is `cpu(number)` nanoseconds."""

    def __init__(self, cpu: Any, steps: int) -> None:
        words = [0] * at.RING_END
        words[at.W_RING] = steps
        for number in range(max(0, steps - at.RING_STEPS), steps):
            place = at.RING + number % at.RING_STEPS * at.STEP_WORDS
            words[place : place + at.STEP_WORDS] = [0, 0, 0, 0, 0, int(cpu(number)), 8, number]
        self.words = memoryview(bytearray(at.RING_END * 8)).cast("q")
        for place, word in enumerate(words):
            self.words[place] = word


@pytest.mark.parametrize(("cpu", "suspicious"), [(lambda n: 1e6 + 2e4 * n, True), (lambda _: 1e6, False)])
def test_a_series_longer_than_the_ring(cpu: Any, suspicious: bool) -> None:
    series = Series()
    for done in range(100, 3001, 100):
        series.take(Ring(cpu, done))  # type: ignore[arg-type]  # it has the words
    assert len(series.steps) <= 256
    assert series.steps[0][7] < 50
    assert series.suspicious() is suspicious
    assert not series.suspicious(), "once, until it has grown further"
