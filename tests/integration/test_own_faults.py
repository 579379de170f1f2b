"""Our own faults: whatever breaks in unstuck, the training ends as it would have, and the report says what was off."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Outcome, Runner
from unstuck.supervise.child import SITE

RECORD = Path(SITE).parent
OUTSIDE = {"selftest.py"}
"""Modules of the recorder's folder that are run for themselves."""

CODE = 7
"""With which the training ends."""

TRAINING = """
import os, subprocess, sys, threading
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        with open(__file__) as file:
            file.readline()
        return torch.tensor([float(index)]), torch.tensor([float(index * index)])


def breaks():
    raise ValueError('a thread died')


torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for workers in (2, 0, 2):
    for x, y in DataLoader(Squares(), batch_size=3, num_workers=workers):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item(), flush=True)
threading.excepthook = lambda arguments, before=threading.excepthook: (before(arguments), print(arguments.exc_value))
thread = threading.Thread(target=breaks)
thread.start()
thread.join()
os.environ['PYTHONPATH'] = '/nowhere'
subprocess.run([sys.executable, '-c', 'import os; print(os.environ["PYTHONPATH"].split(":")[-1])'], check=True)
del os.environ['PYTHONPATH']
print(os.environ.get('PYTHONPATH'))
sys.exit(7)
"""

INJECT = """
import importlib, os

def broken(name):
    def raises(*arguments, **options):
        raise RuntimeError('injected into ' + name)
    return raises

for target in os.environ.get('INJECTED', '').split():
    module, _, name = target.partition(':')
    part = importlib.import_module('_unstuck_recorder.' + module)
    if name == 'os':
        part.os = type(os)('os')
        part.os.fsencode = broken(target)
    else:
        kind, _, method = name.rpartition('.')
        holder = getattr(part, kind) if kind else part
        assert callable(getattr(holder, method)), target
        setattr(holder, method, broken(target))
"""

PROBES = {
    "passes": "data.passes:Passes.pass_began",
    "fingerprints": "data.fingerprints:Fingerprints.batch_looked_at",
    "data": "data.batch_statistics:BatchStatistics.batch_looked_at",
    "aliases": "data.aliases:Aliases.batch_looked_at",
    "handles": "data.shared_handles:SharedHandles.worker_began",
    "dataset state": "data.dataset_state:DatasetState.fetch_began",
    "failures": "death.failures:Failures.thread_failed",
    "learning": "learning.learning_probe:LearningProbe.before_step",
    "graph": "memory.graph_growth:GraphGrowth.before_backward",
    "frameworks": "frameworks.library_loops:LibraryLoops.pass_began",
}
"""By probe: an event of it that this training has."""

# What is broken inside the training, and the probes that must be named for it.
INSIDE = {
    "hooks begin": (
        "hooks.dataloader:came hooks.fetch:Fetching.begin stepping:turn attempts:Attempts._note environment:os",
        ["loader", "fetch", "optimizer", "attempts", "environment"],
    ),
    "hooks finish": (
        "hooks.dataloader:look hooks.dataloader:opened hooks.fetch:Fetching.finish hooks.fetch:worker_began",
        ["loader passes _MultiProcessingDataLoaderIter", "fetch", "worker"],
    ),
    "hooks end": ("hooks.dataloader:no_batch hooks.processes:emit signals:arm", ["loader", "thread ends", "signals"]),
    "flight.account": ("flight:account", ["loader", "fetch", "backward", "optimizer", "end"]),
    "flight.open_file": ("flight:open_file", ["recorder of a child"]),
    "journal.write": ("journal:write", ["passes"]),
    "dispatch": ("dispatch:Dispatch._listen", ["loader passes _MultiProcessingDataLoaderIter", "optimizers built"]),
    "governor": ("governor:Reading.__enter__", ["loader passes _MultiProcessingDataLoaderIter", "optimizers built"]),
    "every probe": (" ".join(f"probes.{place}" for place in PROBES.values()), list(PROBES)),
}


def inject(folder: Path, targets: str) -> dict[str, str]:
    """Environment in which the recorder breaks: the site it gives way to, as to any user's, replaces parts of it."""
    place = folder / "broken-site"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(
        "import sys\nif '_unstuck_recorder.start' in sys.modules:\n" + textwrap.indent(INJECT, "    ")
    )
    return {"PYTHONPATH": str(place), "INJECTED": targets}


def off(outcome: Outcome) -> dict[str, str]:
    return {item["probe"]: item["why"] for item in outcome.report["probes_off"]}


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> str:
    """What the training prints without us; run once, though several processes test."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker_id == "master" else folder.parent
    printed = folder / "plain.txt"
    with open(folder / "plain.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not printed.exists():
            script = tmp_path_factory.mktemp("plain") / "train.py"
            script.write_text(TRAINING)
            env = {**os.environ, "OMP_NUM_THREADS": "1"}
            env.pop("PYTHONPATH", None)
            done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=120)
            assert done.returncode == CODE, done.stderr
            printed.write_text(done.stdout)
    return printed.read_text()


QUICK = ("hooks begin", "flight.account", "every probe")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in INSIDE]
)
def test_fault_inside_the_training(unstuck: Runner, plain: str, case: str) -> None:
    targets, probes = INSIDE[case]
    script = unstuck.folder / "train.py"
    script.write_text(TRAINING)
    outcome = unstuck.run(script, env=inject(unstuck.folder, targets))
    assert outcome.code == CODE, outcome.err
    assert outcome.out == plain
    assert "injected" not in outcome.err
    told = off(outcome)
    assert set(probes) <= set(told), told
    for probe in probes:
        assert "RuntimeError: injected into" in told[probe]


def test_nothing_is_off_without_a_fault(unstuck: Runner, plain: str) -> None:
    """What the tests above rest on: unbroken, the same training has nothing to name."""
    script = unstuck.folder / "train.py"
    script.write_text(TRAINING)
    outcome = unstuck.run(script, env=inject(unstuck.folder, ""))
    assert (outcome.code, outcome.out) == (CODE, plain)
    assert outcome.report["probes_off"] == []
    assert outcome.report["run"]["steps"] == 12


def test_recorder_that_cannot_begin(unstuck: Runner) -> None:
    """The folder of flight files is gone before Python starts; then: it is there, and may not be written."""
    script = unstuck.folder / "train.py"
    script.write_text("import os, sys; os.fork() or os._exit(0); print('ran'); sys.exit(7)")
    for spoil in ('rm -r "$UNSTUCK_FLIGHT_DIR"', 'mkdir "$UNSTUCK_FLIGHT_DIR/keep"; export UNSTUCK_FLIGHT_DIR=/proc/1'):
        report = unstuck.folder / "report.json"
        words: list[str | Path] = [
            "run",
            "--report",
            report,
            "--",
            "sh",
            "-c",
            f'{spoil}; exec "$@"',
            "sh",
            sys.executable,
            script,
        ]
        outcome = unstuck.finish(unstuck.start(*words), report, time.monotonic(), 60)
        assert (outcome.code, outcome.out) == (7, "ran\n"), outcome.err
        assert "flight file" in off(outcome)["recorder"]
        for left in Path(os.environ["TMPDIR"]).glob("unstuck-*/keep"):
            left.rmdir()
            left.parent.rmdir()


# --- the supervisor ------------------------------------------------------------------------------------------

HEALTHY = "import sys, time\nfor n in range(4):\n    print(n, flush=True)\n    time.sleep(0.4)\nsys.exit(7)"
HUNG = """
import threading

def wait_for_ever():
    lock = threading.Lock()
    with lock:
        lock.acquire()

print('begun', flush=True)
open('begun', 'w').close()
wait_for_ever()
"""

# What is broken in the supervisor (statements), and the probe that must be named for it.
OUTSIDE_PARTS = {
    "clock": ("from unstuck.supervise.watch import Watch; Watch.tick = broken", "supervisor"),
    "signals": ("from unstuck.supervise.supervisor import Supervisor; Supervisor._loop = broken", "supervisor"),
    "observer": ("from unstuck.observer.look import Observer; Observer.look = broken", "observer"),
    "rules": ("import unstuck.rules.diagnose as d; d.diagnose = broken", "rules"),
    "one rule": (
        "import unstuck.rules as r; from dataclasses import replace; "
        "r.RULES = tuple(replace(rule, decide=broken) for rule in r.RULES)",
        "rule lock-never-released",
    ),
    "drawing": ("import unstuck.report.terminal as t; t.render = broken", "terminal"),
    "run folder": ("import unstuck.report.store as s; s.RunFolder.save = full_disk", "run folder"),
    "copies": ("import unstuck.supervise.flight_folder as f; f.FlightFolder.keep_copy = full_disk", "run folder"),
    "py-spy": (
        "import unstuck.observer.stacks as s; s.find_py_spy = lambda: 'SLEEPS'; "
        "s.PySpy.__init__.__kwdefaults__['limit'] = 0.3",
        "py-spy",
    ),
}
HURTS_THE_HEALTHY = ("clock", "signals", "run folder", "copies")
"""Those that are in use also while nothing stands still."""
STARTER = """
import errno, os, sys

def broken(*arguments, **options):
    raise RuntimeError('injected')

def full_disk(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

{patch}
from unstuck.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start_broken(unstuck: Runner, patch: str, *words: str | Path) -> subprocess.Popen[bytes]:
    """`unstuck WORDS…` with something replaced in it."""
    sleeps = unstuck.folder / "py-spy"
    sleeps.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeps.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER.format(patch=patch.replace("SLEEPS", str(sleeps))), *map(str, words)],
        cwd=unstuck.folder,
        env={**os.environ, "UNSTUCK_TEST_MARK": str(unstuck.folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    unstuck.processes.append(process)
    return process


def words_for(unstuck: Runner, text: str) -> tuple[Path, list[str | Path]]:
    script, report = unstuck.folder / "train.py", unstuck.folder / "report.json"
    script.write_text(text)
    return report, ["run", "--python", sys.executable, "--stall-after", "1", "--report", report, script]


@pytest.mark.parametrize("case", HURTS_THE_HEALTHY)
def test_fault_in_the_supervisor_of_a_healthy_run(unstuck: Runner, case: str) -> None:
    patch, probe = OUTSIDE_PARTS[case]
    report, words = words_for(unstuck, HEALTHY)
    outcome = unstuck.finish(start_broken(unstuck, patch, *words), report, time.monotonic(), 60)
    assert (outcome.code, outcome.out) == (7, "0\n1\n2\n3\n"), outcome.err
    assert probe in off(outcome)
    assert "unstuck: " in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("case", OUTSIDE_PARTS)
def test_fault_in_the_supervisor_of_a_hung_run(unstuck: Runner, case: str) -> None:
    """It hangs long enough to be looked at, then somebody else ends it."""
    patch, probe = OUTSIDE_PARTS[case]
    report, words = words_for(unstuck, HUNG)
    began = time.monotonic()
    process = start_broken(unstuck, patch, *words)
    _wait_for_look(unstuck, process)
    os.kill(process.pid, signal.SIGTERM)
    outcome = unstuck.finish(process, report, began, 60)
    assert (outcome.code, outcome.out) == (-signal.SIGTERM, "begun\n"), outcome.err
    assert outcome.report["run"]["signal"] == signal.SIGTERM
    assert probe in off(outcome), outcome.err
    assert "Traceback" not in outcome.err
    if case in ("drawing", "run folder", "copies", "py-spy"):
        assert outcome.loud, "what was found is not lost"
        assert outcome.loud[0]["where"]["function"] == "wait_for_ever"
    if case == "drawing":
        assert outcome.loud[0]["title"] in outcome.err
    if case == "py-spy":
        assert "no answer within" in off(outcome)["py-spy"]


def _wait_for_look(unstuck: Runner, process: subprocess.Popen[bytes]) -> None:
    """Until it hangs and was looked at: a finding was written, or so much time has passed that one should have been."""
    _wait_until((unstuck.folder / "begun").exists, process, 60)
    _wait_until((unstuck.folder / "report.json").exists, process, 3)


def _wait_until(done: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not done():
        assert process.poll() is None
        time.sleep(0.1)


def test_fault_in_all_that_looks_and_thinks(unstuck: Runner) -> None:
    """Without a Case there is no report: standard error says why, and the run folder keeps how it ended."""
    patch = "from unstuck.supervise.evidence import Evidence; Evidence.__init__ = broken"
    report, words = words_for(unstuck, HUNG)
    process = start_broken(unstuck, patch, *words)
    _wait_for_look(unstuck, process)
    os.kill(process.pid, signal.SIGTERM)
    outcome = unstuck.finish(process, report, time.monotonic(), 60)
    assert (outcome.code, outcome.out, outcome.report) == (-signal.SIGTERM, "begun\n", {})
    assert "no longer watching; your training continues (RuntimeError: injected)" in outcome.err
    (kept,) = unstuck.folder.glob(".unstuck/*/run.json")
    told = json.loads(kept.read_text())
    assert told["signal"] == signal.SIGTERM
    assert "supervisor" in told["probes_off"]


def test_fault_in_writing_any_report(unstuck: Runner) -> None:
    """Then there is only standard error to say it."""
    patch = "import unstuck.report.json_report as j; j.report = broken"
    report, words = words_for(unstuck, HEALTHY)
    outcome = unstuck.finish(start_broken(unstuck, patch, *words), report, time.monotonic(), 60)
    assert (outcome.code, outcome.out, outcome.report) == (7, "0\n1\n2\n3\n", {})
    assert "RuntimeError: injected" in outcome.err
    assert str(report) in outcome.err


def test_report_becomes_unwritable_while_it_runs(unstuck: Runner) -> None:
    """Checked at the start, gone at the end: said once, and the run folder still has it."""
    place = unstuck.folder / "out"
    place.mkdir()
    script = unstuck.folder / "train.py"
    script.write_text("import os, sys; os.rmdir('out'); sys.exit(7)")
    words: list[str | Path] = ["run", "--report", place / "report.json", script]
    outcome = unstuck.finish(unstuck.start(*words), place / "report.json", time.monotonic(), 60)
    assert outcome.code == 7
    assert outcome.err.count("could not be written") == 1
    (kept,) = unstuck.folder.glob(".unstuck/*/report.json")
    assert json.loads(kept.read_text())["run"]["exit_code"] == 7


# --- the recorder itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(RECORD.rglob("*.py")), ids=lambda path: path.name)
def test_recorder_is_self_contained(path: Path) -> None:
    """It is injected into any environment: nothing but the standard library, itself, and the user's torch."""
    if path.name in OUTSIDE:
        return
    allowed = {*sys.stdlib_module_names, "torch", "torchdata", "_unstuck_recorder", "_unstuck", "sitecustomize"}
    allowed.add("typing_extensions")  # for the type checker only
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.ImportFrom):
            deep = len(path.relative_to(RECORD).parts)
            assert node.level <= deep, "nothing above its own folder"
            inside = {alias.name for alias in node.names}
            assert not inside & {Path(name).stem for name in OUTSIDE}
        for name in names:
            assert name.partition(".")[0] in allowed, f"{path.name} imports {name}"


def test_sitecustomize_compiles_on_any_python_3() -> None:
    """Pythons below 3.10 meet it too, and must get past it."""
    ast.parse((RECORD / "site" / "sitecustomize.py").read_text(), feature_version=(3, 4))


HOOKS = """
import atexit, faulthandler, os, posix, signal, sys, threading
import torch
from torch.utils.data import DataLoader, _utils, dataloader
from _unstuck_recorder import attempts, flight, guard, imports, start

here = os.path.dirname(start.__file__)
places = [
    (dataloader._BaseDataLoaderIter, '__next__'),
    (dataloader._SingleProcessDataLoaderIter, '__init__'),
    (dataloader._MultiProcessingDataLoaderIter, '_reset'),
    (_utils.fetch._MapDatasetFetcher, 'fetch'),
    (_utils.fetch._IterableDatasetFetcher, 'fetch'),
    (_utils.signal_handling, '_set_worker_signal_handlers'),
    (torch.autograd, 'backward'),
    (torch.autograd, 'grad'),
    (torch.optim.Optimizer, '__init__'),
    (torch.optim.Optimizer, 'zero_grad'),
    (os, 'putenv'),
    (os, 'unsetenv'),
    (threading, 'excepthook'),
]
built = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)  # zero_grad is hooked when there is an optimizer
hooked = [getattr(owner, name) for owner, name in places]
for function in hooked:
    assert function.__code__.co_filename.startswith((here, '<unstuck')), function
from torch.optim import optimizer
assert optimizer._global_optimizer_pre_hooks and optimizer._global_optimizer_post_hooks
assert faulthandler.is_enabled() and imports._Finder in sys.meta_path
assert set(start.self_test().values()) == {'on', 'waiting'}

start.stop()

for (owner, name), function in zip(places, hooked):
    now = getattr(owner, name)
    original = getattr(function, '__wrapped__', None)
    assert now is original if original else now in (posix.putenv, posix.unsetenv, threading.__excepthook__), name
assert not optimizer._global_optimizer_pre_hooks and not optimizer._global_optimizer_post_hooks
assert imports._Finder not in sys.meta_path
assert not faulthandler.is_enabled()
with open('/proc/self/status') as status:
    caught = int(next(line for line in status if line.startswith('SigCgt')).split()[1], 16)
assert not caught >> (signal.SIGRTMIN + 5 - 1) & 1
assert not caught >> (signal.SIGTERM - 1) & 1
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert guard.installed() == [] and guard.OFF == {}, (guard.installed(), guard.OFF)
attempts.Attempts._note = lambda *arguments: 1 / 0
open(os.devnull).close()
assert guard.OFF == {}
files = set(os.listdir(flight._folder))
if os.fork() == 0:
    os._exit(0)
os.wait()
assert set(os.listdir(flight._folder)) == files
seams = flight.words[start.at.W_PROGRESS]
weight = torch.nn.Parameter(torch.ones(1))
for batch in DataLoader([1.0, 2.0]):
    (weight * batch).sum().backward()
assert flight.words[start.at.W_PROGRESS] == seams
atexit._run_exitfuncs()
assert flight.words[start.at.W_ENDED] == 0
print('clean')
"""


def test_every_hook_can_be_taken_out(tmp_path: Path) -> None:
    flights = tmp_path / "flights"
    flights.mkdir()
    env = {**os.environ, "UNSTUCK_FLIGHT_DIR": str(flights), "PYTHONPATH": str(SITE)}
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run([sys.executable, "-c", HOOKS], env=env, **options)
    assert (done.returncode, done.stdout) == (0, "clean\n"), done.stderr


ODD_KEYS = """
import torch
from torch.utils.data import DataLoader, Dataset


class Odd:
    def __repr__(self):
        raise KeyError('no name')

    def __index__(self):
        raise RuntimeError('not a number')


class Keyed(Dataset):
    def __getitem__(self, key):
        return 1.0


keys = [[Odd(), (Odd(),), 'a\\ud800', 1 << 80, None, b'x', 2.5, (1, 2)]]
for sampler in (dict(batch_sampler=keys), dict(sampler=keys[0], batch_size=None)):
    print(sum(torch.as_tensor(batch).sum().item() for batch in DataLoader(Keyed(), **sampler)), flush=True)
try:
    open('\\ud800')
except (OSError, UnicodeError):
    print('no such file')
"""


def test_keys_that_cannot_even_be_named(unstuck: Runner) -> None:
    """Keys of samples are the user's own objects: neither their `repr` nor their `__index__` may hurt the run."""
    script = unstuck.folder / "train.py"
    script.write_text(ODD_KEYS)
    outcome = unstuck.run(script)
    assert (outcome.code, outcome.out) == (0, "8.0\n8.0\nno such file\n"), outcome.err
    assert outcome.report["probes_off"] == []
