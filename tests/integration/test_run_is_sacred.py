"""The run is sacred, attacked: nothing of the user's is run, slowed, broken, shown to, or lost by us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.conftest import Outcome, Runner
from unstuck.supervise.child import SITE

SCRIPTS = Path(__file__).parent / "scripts"
RECORDER = Path(SITE).parent
LIMIT = 300


def plain(unstuck: Runner, name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The script without us."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "UNSTUCK_TEST_MARK": str(unstuck.folder)}
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LIMIT, "check": False}
    command = [sys.executable, str(SCRIPTS / name), *map(str, words)]
    return subprocess.run(command, cwd=unstuck.folder, env=env, stdin=subprocess.DEVNULL, **options)


def watched(unstuck: Runner, name: str, *words: str | Path) -> Outcome:
    options: dict[str, Any] = {"limit": LIMIT, "stdin": subprocess.DEVNULL}
    return unstuck.run(SCRIPTS / name, *map(str, words), flags=("--python", sys.executable), **options)


def both(unstuck: Runner, name: str, *words: str | Path, code: int = 0) -> Outcome:
    """Run a script by itself and below unstuck: the same to the last bit, and nothing of ours is off."""
    alone = plain(unstuck, name, *words)
    assert alone.returncode == code, alone.stderr
    outcome = watched(unstuck, name, *words)
    assert differing(alone.stdout, outcome.out) == []
    assert outcome.code == code, outcome.err
    assert off(outcome) == {}
    return outcome


def differing(alone: str, below: str) -> list[tuple[str, str]]:
    """Lines that are not the same: all of the output would be too much to read."""
    first, second = alone.splitlines(), below.splitlines()
    longest = max(len(first), len(second))
    pairs = zip(first + [""] * (longest - len(first)), second + [""] * (longest - len(second)), strict=True)
    return [pair for pair in pairs if pair[0] != pair[1]][:40]


def off(outcome: Outcome) -> dict[str, str]:
    return {item["probe"]: item["why"] for item in outcome.report["probes_off"] if item["probe"] != "py-spy"}


def recorded(unstuck: Runner) -> list[int]:
    """Pids of the processes that left a flight file, one for each file."""
    return [int(path.name.partition("-")[0]) for path in unstuck.folder.glob(".unstuck/*/flight/*.flight")]


# --- objects of other threads --------------------------------------------------------------------------------


@pytest.mark.slow  # that no such walk is made, the next test sees in the source
def test_threads_that_build_tuples(unstuck: Runner) -> None:
    """A walk over all objects holds the tuple that another thread is building, which then is a SystemError there."""
    outcome = watched(unstuck, "sacred_threads.py")
    assert (outcome.code, outcome.out[-10:], off(outcome)) == (0, "broken []\n", {}), outcome.err


@pytest.mark.parametrize("path", sorted(RECORDER.rglob("*.py")), ids=lambda path: path.name)
def test_no_walk_over_all_objects(path: Path) -> None:
    text = path.read_text()
    assert "gc.get_objects" not in text
    assert "get_referrers" not in text


# --- bounds --------------------------------------------------------------------------------------------------


def test_long_batches_and_long_keys(unstuck: Runner) -> None:
    """200,000 numbers in lists, and keys of 100,000: what we look at, copy and print has a bound."""
    for attempt in range(3):
        alone = plain(unstuck, "sacred_long_batches.py", "plain.json")
        outcome = watched(unstuck, "sacred_long_batches.py", "watched.json")
        assert (outcome.code, outcome.out, off(outcome)) == (0, alone.stdout, {}), outcome.err
        times = [json.loads((unstuck.folder / name).read_text()) for name in ("plain.json", "watched.json")]
        before, after = ({what: median(each) for what, each in taken.items()} for taken in times)
        slow = {what: (before[what], after[what]) for what in before if after[what] > 2.5 * before[what] + 0.002}
        if not slow:
            return
        print(f"attempt {attempt}: {slow}")
    raise AssertionError(f"seconds of processor time a step, alone and watched: {slow}")


# --- what is the user's is not run ---------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["250", pytest.param("3000", marks=pytest.mark.slow)])
def test_nothing_of_the_users_is_called(unstuck: Runner, steps: str) -> None:
    """Lengths, comparisons, properties, descriptors: each draws a random number. The steps last long enough for the
    supervisor to ask about loops, and about what grows."""
    outcome = both(unstuck, "sacred_methods.py", steps, "0.001")
    assert "while not done" in outcome.out


@pytest.mark.slow
def test_classes_of_the_users_are_not_asked(unstuck: Runner) -> None:
    """A class of theirs may have a class of its own, which hashes, compares and looks up in its own way."""
    both(unstuck, "sacred_classes.py", "1500", "0.002")


# --- modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["60", pytest.param("600", marks=pytest.mark.slow)])
def test_modes_see_no_operation_of_ours(unstuck: Runner, steps: str) -> None:
    outcome = both(unstuck, "sacred_modes.py", steps)
    assert "called, on a default device" in outcome.out


@pytest.mark.slow
def test_tensors_of_other_classes_hear_nothing_of_ours(unstuck: Runner) -> None:
    outcome = both(unstuck, "sacred_subclasses.py", "100")
    # Five trainings of 104 steps, two of them by hand: one with weights of a class that must not be asked.
    assert outcome.report["run"]["steps"] >= 410


# --- processes that get lost ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        "first",
        pytest.param("train", marks=pytest.mark.slow),
        pytest.param("cleaned", marks=pytest.mark.slow),
    ],
)
def test_script_that_replaces_itself(unstuck: Runner, how: str) -> None:
    """The pid and the start time stay; what came before the exec has ended, what comes after is recorded."""
    outcome = watched(unstuck, "sacred_restarts.py", how)
    assert (outcome.code, off(outcome)) == (5, {}), outcome.err
    assert outcome.out.splitlines()[-1].startswith("12 0x")
    assert outcome.report["run"]["steps"] == 12
    assert outcome.report["run"]["exit_code"] == 5
    assert outcome.loud == []
    pids = recorded(unstuck)
    assert (len(pids), len(set(pids))) == (2, 1)


FOLLOWED = (
    *("inherited", "nothing", "nothing, with a child", "nothing, with a child of it", "own path", "empty path"),
    *("bytes", "copied", "without PYTHONPATH", "prepared", "not closing", "by a link", "by name", "posix_spawn"),
    *("posix_spawn, own", "spawnve", "execve", "execvpe", "cleared"),
)


def test_children_with_environments_of_their_own(unstuck: Runner) -> None:
    """They are followed, and see of their environment what the script gave them."""
    first, second = unstuck.folder / "a", unstuck.folder / "b"
    first.mkdir()
    second.mkdir()
    alone = plain(unstuck, "sacred_children.py", first)
    outcome = watched(unstuck, "sacred_children.py", second)
    assert differing(alone.stdout.replace(str(first), str(second)), outcome.out) == []
    assert (outcome.code, outcome.err, off(outcome)) == (0, alone.stderr, {})
    pids = set(recorded(unstuck))
    lost = [name for name in FOLLOWED if int((second / name).read_text()) not in pids]
    assert lost == []


def written(unstuck: Runner, text: str) -> Path:
    script = unstuck.folder / "train.py"
    script.write_text(textwrap.dedent(text))
    return script


def test_process_that_cannot_be_followed_is_told(unstuck: Runner) -> None:
    """Once for each command that stays; what is gone within three seconds is no training."""
    script = written(
        unstuck,
        """
        import subprocess, sys, time
        STAY = "import time; time.sleep(4.5)"
        quick = [subprocess.Popen([sys.executable, "-I", "-c", "pass"]) for _ in range(2)]
        long = [subprocess.Popen([sys.executable, "-I", "-c", STAY]) for _ in range(2)]
        long.append(subprocess.Popen(["env", "-i", sys.executable, "-c", STAY + " # cleaned"]))
        long.append(subprocess.Popen(["sleep", "4.5"], env={}))
        known = subprocess.Popen([sys.executable, "-c", STAY], env={})
        for child in (*quick, *long, known):
            child.wait()
        """,
    )
    outcome = unstuck.run(script, limit=60)
    assert outcome.code == 0, outcome.err
    lines = [line for line in outcome.err.splitlines() if "not recorded" in line]
    assert len(lines) == 2, outcome.err
    assert all(line.startswith("unstuck: process ") and "time.sleep(4.5)" in line for line in lines)
    assert sum(" -I " in line for line in lines) == 1
    assert sum("# cleaned" in line for line in lines) == 1


@pytest.mark.slow
def test_exec_that_cannot_be_followed_is_told(unstuck: Runner) -> None:
    script = written(
        unstuck,
        """
        import os, sys
        os.execv(sys.executable, [sys.executable, "-E", "-c", "import time; time.sleep(9)"])
        """,
    )
    outcome = unstuck.run(script, limit=60)
    assert outcome.code == 0, outcome.err
    lines = [line for line in outcome.err.splitlines() if "not recorded" in line]
    assert len(lines) == 1, outcome.err
    assert " -E -c " in lines[0]


# --- kinds of training ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pickled", "scripted", "compiled", "spawned"])
def test_kinds_of_training(unstuck: Runner, kind: str) -> None:
    """Also what is written away of them: nothing was added to it."""
    assert "0x" in both(unstuck, "sacred_kinds.py", kind).out
