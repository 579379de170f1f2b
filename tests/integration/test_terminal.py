"""As a person at a terminal sees it: Ctrl-C is a question, jobs stop and go on, prompts and output stay whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Runner
from tests.corpus import FAULTY
from tests.integration.terminal import PROMPT, Terminal
from tests.processes import variable_of, words_of

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture
def terminal(unstuck: Runner) -> Iterator[Terminal]:
    terminal = Terminal(unstuck.folder)
    try:
        yield terminal
    finally:
        terminal.close()


def script(unstuck: Runner, text: str) -> str:
    (unstuck.folder / "script.py").write_text(text)
    return "script.py"


def findings(unstuck: Runner) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((unstuck.folder / "report.json").read_text())["findings"]
    return found


def wait_until_it_hangs() -> None:
    """The flight file of the training has stopped changing."""
    from unstuck.observer.gauge import Gauge

    deadline = time.monotonic() + 60
    seen: tuple[int, ...] = ()
    since = time.monotonic()
    while time.monotonic() - since < 3.5:  # two looks have been taken by then, also beside other tests
        assert time.monotonic() < deadline, "it does not hang"
        gauges = [Gauge.open(str(path)) for path in Path(os.environ["TMPDIR"]).glob("unstuck-*/*.flight")]
        trains = any(gauge.trains for gauge in gauges if gauge is not None)
        progress = tuple(sorted(gauge.progress for gauge in gauges if gauge is not None))
        if progress != seen or not trains:
            seen, since = progress, time.monotonic()
        for gauge in gauges:
            if gauge is not None:
                gauge.close()
        time.sleep(0.1)


# --- Ctrl-C is a question ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "fork-vocab-refresher",  # a lock lost in fork
        pytest.param("lockf-registry-indexer", marks=pytest.mark.slow),  # a file lock
        pytest.param("spin-foreground-crop", marks=pytest.mark.slow),  # a sample that spins
        pytest.param("prompt-overwrite-checkpoint", marks=pytest.mark.slow),  # input()
        pytest.param("fifo-in-manifest", marks=pytest.mark.slow),  # a FIFO
        pytest.param("prefetch-thread-died", marks=pytest.mark.slow),  # a queue nobody fills
        pytest.param("metrics-lock-nested", marks=pytest.mark.slow),
        pytest.param("queue-join-before-get", marks=pytest.mark.slow),
    ],
)
def test_interrupt_explains_a_hang_before_its_verdict(unstuck: Runner, terminal: Terminal, name: str) -> None:
    script = FAULTY[name]
    terminal.type(f"{terminal.unstuck} {script.path}")
    wait_until_it_hangs()
    before = terminal.screen()
    assert "✖" not in before
    terminal.press("C-c")
    screen = terminal.wait_for_prompt()
    first = findings(unstuck)[0]
    assert first["rule"] in script.rules, screen
    assert first["severity"] == ("info" if first["rule"] == "waits-on-input" else "error")
    assert not first["withdrawn"]
    assert first["where"]["file"].endswith(f"{name}.py")
    if script.sample is not None:
        assert first["where"]["sample"] == script.sample
    after = screen[screen.index("^C") :]
    assert first["rule"] in after
    assert re.search(r"^next: unstuck report \S+$", after, re.MULTILINE)
    assert terminal.status() not in (0, 70)


TRAINS = """
import time, torch
from torch.utils.data import DataLoader, TensorDataset
weight = torch.zeros(2, requires_grad=True)
opt = torch.optim.SGD([weight], lr=1e-4)
for step in range(10**9):
    for (batch,) in DataLoader(TensorDataset(torch.ones(16, 2)), batch_size=4):
        opt.zero_grad()
        (batch @ weight - 1).pow(2).mean().backward()
        opt.step()
    time.sleep(0.05)
    if step == 10:
        print("training", flush=True)
"""


def test_interrupt_of_a_healthy_run_prints_no_finding(unstuck: Runner, terminal: Terminal) -> None:
    terminal.type(f"{terminal.unstuck} {script(unstuck, TRAINS)}")
    terminal.wait_for("^training$")
    time.sleep(1)
    terminal.press("C-c")
    screen = terminal.wait_for_prompt()
    assert screen.count("KeyboardInterrupt") == 1
    assert "unstuck report" not in screen
    assert findings(unstuck) == []
    assert terminal.status() == 130


ASKED_TWICE = """
import signal, time
def handle(*_):
    global asked
    asked += 1
    print("asked", asked, flush=True)
    if asked == 2:
        raise SystemExit(9)
asked = 0
signal.signal(signal.SIGINT, handle)
print("begun", flush=True)
while True:
    time.sleep(0.1)
"""


def test_interrupt_twice(unstuck: Runner, terminal: Terminal) -> None:
    terminal.type(f"{terminal.unstuck} {script(unstuck, ASKED_TWICE)}")
    terminal.wait_for("^begun$")
    terminal.press("C-c")
    terminal.wait_for("asked 1$")
    time.sleep(1)
    assert "asked 2" not in terminal.screen()
    terminal.press("C-c")
    screen = terminal.wait_for_prompt()
    assert screen.count("asked 2") == 1
    assert terminal.status() == 9


def test_interrupt_twice_at_once(unstuck: Runner, terminal: Terminal) -> None:
    text = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
    terminal.type(f"{terminal.unstuck} {script(unstuck, text)}")
    terminal.wait_for("^begun$")
    terminal._tmux("send-keys", "C-c", "C-c", "C-c")
    screen = terminal.wait_for_prompt()
    assert "unstuck" not in screen.rpartition("begun")[2]
    assert terminal.status() == 130


# --- prompts and output --------------------------------------------------------------------------------------


def test_debugger_prompt(unstuck: Runner, terminal: Terminal) -> None:
    text = "value = 20\nbreakpoint()\nprint('went on', value, flush=True)\n"
    terminal.type(f"{terminal.unstuck} {script(unstuck, text)}")
    terminal.wait_for(r"^\(Pdb\)$")
    time.sleep(4)  # looks are taken meanwhile
    terminal.type("p value + 22")
    terminal.wait_for(r"^42$")
    terminal.type("c")
    screen = terminal.wait_for_prompt()
    assert re.search(r"^went on 20$", screen, re.MULTILINE)
    assert "unstuck:" not in screen
    assert findings(unstuck) == []
    assert terminal.status() == 0


HALTS = """
import time, torch
weight = torch.zeros(2, requires_grad=True)
opt = torch.optim.SGD([weight], lr=1e-4)
def steps():
    for _ in range(20):
        opt.zero_grad()
        (weight - 1).pow(2).mean().backward()
        opt.step()
steps()
if TOP:
    print("\\033[H\\033[2J", end="", flush=True)  # the cursor is in the first line, which is empty
else:
    print("a line")
    print("half a line, ", end="", flush=True)
time.sleep(13)
print("its end\\nand\\nmore", flush=True)
time.sleep(1)
steps()
time.sleep(1)
for number in range(3):
    steps()
    print("line", number, flush=True)
"""


def without_early_word(screen: str) -> list[str]:
    """On a slow machine the halt may last until that line is due; it stays, and where it stands is not at issue."""
    return [line for line in screen.splitlines() if not re.match(r"unstuck: .*(still watching|moving again)", line)]


def test_status_line_comes_and_goes(unstuck: Runner, terminal: Terminal) -> None:
    terminal.type(f"{terminal.unstuck} {script(unstuck, HALTS.replace('TOP', 'False'))}")
    screen = terminal.wait_for(r"^unstuck: no step for 1\d s.*finding out why …$")
    assert re.search(r"^half a line, *$", screen, re.MULTILINE)
    lines = without_early_word(terminal.wait_for_prompt())
    begin = lines.index("a line")
    assert lines[begin:] == ["a line", "half a line, its end", "and", "more", "line 0", "line 1", "line 2", PROMPT]
    assert terminal.status() == 0


def test_status_line_leaves_nothing_in_the_scrollback(unstuck: Runner, terminal: Terminal) -> None:
    terminal.type(f"{terminal.unstuck} {script(unstuck, HALTS.replace('TOP', 'True'))}")
    terminal.wait_for(r"^unstuck: no step for 1\d s.*finding out why …$")
    lines = without_early_word(terminal.wait_for_prompt())
    assert lines[-7:] == ["its end", "and", "more", "line 0", "line 1", "line 2", PROMPT]
    assert not any("finding out" in line for line in lines)


BAR = """
import time, torch
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm
inputs = torch.rand(1200, 4)
inputs[600] = float("nan")
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    bar = tqdm(DataLoader(TensorDataset(inputs), batch_size=4), desc=f"epoch {epoch}", mininterval=0.02)
    for (batch,) in bar:
        loss = (model(batch) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
        time.sleep(0.01)
"""


@pytest.mark.parametrize("columns", [80, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stop", ["", pytest.param("--stop-on error ", marks=pytest.mark.slow)], ids=["", "stopped"])
def test_progress_bar_stays_whole(unstuck: Runner, columns: int, stop: str) -> None:
    """A finding comes while the bar is drawn: the bar goes on below it, and no line of ours is on a line of its."""
    pytest.importorskip("tqdm")
    terminal = Terminal(unstuck.folder, columns=columns)
    try:
        terminal.type(f"clear; {terminal.unstuck} {stop}{script(unstuck, BAR)}")
        screen = terminal.wait_for_prompt()
    finally:
        terminal.close()
    lines = screen.splitlines()
    bars = [number for number, line in enumerate(lines) if line.startswith("epoch")]
    headline = next(number for number, line in enumerate(lines) if line.startswith("── unstuck"))
    for number in bars:
        assert re.fullmatch(r"epoch \d: +\d+%\|[█▏▎▍▌▋▊▉ ]+\| \d+/300 \[.*\]", lines[number].rstrip())
        assert len(lines[number].rstrip()) < columns
    assert bars[0] == headline - 1  # where it was drawn, whole
    assert bars[1] > headline
    if not stop:
        assert len(bars) == 3
        assert "100%" in lines[bars[2]]
    assert [line for line in lines if "unstuck: " in line and not line.startswith("unstuck: ")] == []
    assert re.fullmatch(r"next: unstuck report \S+", lines[-2].rstrip())


ASKS = """
import torch
weight = torch.zeros(2, requires_grad=True)
opt = torch.optim.SGD([weight], lr=1e-4)
for _ in range(20):
    opt.zero_grad()
    (weight - 1).pow(2).mean().backward()
    opt.step()
print("answered", repr(input("overwrite? [y/N] ")), flush=True)
"""


def test_question_stays_readable(unstuck: Runner, terminal: Terminal) -> None:
    terminal.type(f"{terminal.unstuck} {script(unstuck, ASKS)}")
    terminal.wait_for(r"^overwrite\? \[y/N\]$")
    terminal._tmux("send-keys", "-l", "yes, ")
    time.sleep(12)
    screen = terminal.screen()
    assert "overwrite? [y/N] yes," in screen
    assert "looking" not in screen
    terminal.type("please")
    screen = terminal.wait_for_prompt()
    assert re.search(r"^answered 'yes, please'$", screen, re.MULTILINE)
    assert "✖" not in screen
    assert terminal.status() == 0


# --- jobs ----------------------------------------------------------------------------------------------------


COUNTS = """
import time
for number in range(1000):
    time.sleep(0.1)
    if number % 10 == 0:
        print("number", number, flush=True)
    if number == 60:
        raise SystemExit(5)
"""


def test_stop_and_continue(unstuck: Runner, terminal: Terminal) -> None:
    terminal.type(f"{terminal.unstuck} --stall-after 2 {script(unstuck, COUNTS)}")
    terminal.wait_for("^number 10$")
    terminal.press("C-z")
    terminal.wait_for(r"Stopped")
    terminal.wait_for_prompt()
    time.sleep(4)
    assert [job.status() for job in jobs(unstuck)] == [psutil.STATUS_STOPPED] * 2
    terminal.type("fg")
    terminal.wait_for("^number 30$")
    terminal.press("C-z")
    terminal.wait_for(r"(?s)Stopped.*Stopped")
    terminal.type("bg")
    terminal.wait_for("number 40$")
    terminal.type("wait %1; echo waited=$?.")
    screen = terminal.wait_for(r"^waited=\d+\.$")
    assert "waited=5." in screen
    said = [int(number) for number in re.findall(r"number (\d+)$", screen, re.MULTILINE)]
    assert said == list(range(0, 70, 10))
    assert [f for f in findings(unstuck) if f["severity"] != "info"] == []


def jobs(unstuck: Runner) -> list[psutil.Process]:
    """The supervisor and the training of this test."""
    ours = [p for p in psutil.process_iter() if variable_of(p, "UNSTUCK_TEST_MARK") == str(unstuck.folder)]
    return [p for p in ours if "script.py" in (words := words_of(p)) and "python" in os.path.basename(words[0])]


def test_exit_status(unstuck: Runner, terminal: Terminal) -> None:
    name = script(
        unstuck, "import os, sys\nsys.exit(3) if len(sys.argv) == 1 else os.kill(os.getpid(), int(sys.argv[1]))"
    )
    for argument, status in (("", 3), ("15", 143), ("10", 138), ("9", 137), ("2", 130)):
        terminal.type(f"clear; {terminal.unstuck} {name} {argument}")
        terminal.wait_for_prompt()
        assert terminal.status() == status


def test_in_the_background_with_standard_input(unstuck: Runner, terminal: Terminal) -> None:
    """It reads from the terminal, so it is stopped, as any job would be; in the foreground it gets its answer."""
    name = script(unstuck, "print('got', input(), flush=True)")
    terminal.type(f"{terminal.unstuck} {name} &")
    for _ in range(60):  # a shell says so at its next prompt
        time.sleep(1)
        terminal.press("Enter")
        if "Stopped" in terminal.screen():
            break
    terminal.wait_for(r"\[1\]\+\s+Stopped")
    terminal.type("fg")
    time.sleep(0.5)
    terminal.type("an answer")
    terminal.wait_for("^got an answer$")
    assert terminal.status() == 0


def test_in_the_background_with_a_file(unstuck: Runner, terminal: Terminal) -> None:
    (unstuck.folder / "input").write_text("a line\n")
    name = script(unstuck, "print('got', input(), flush=True); raise SystemExit(4)")
    terminal.type(f"{terminal.unstuck} {name} < input > output &")
    terminal.wait_for(PROMPT)
    terminal.type("wait %1; echo waited=$?.")
    assert "waited=4." in terminal.wait_for(r"^waited=\d+\.$")
    assert (unstuck.folder / "output").read_text() == "got a line\n"


def test_nohup(unstuck: Runner, terminal: Terminal) -> None:
    text = """
import signal, time
print([signal.getsignal(s).name for s in (signal.SIGHUP, signal.SIGINT)])
print("begun", flush=True)
time.sleep(2)
print("ended", flush=True)
"""
    inner = f"nohup {terminal.unstuck} {script(unstuck, text)} > output 2>&1 &"
    terminal.type(f"sh -c '{inner} wait; echo waited=$?.'")
    deadline = time.monotonic() + 30
    output = unstuck.folder / "output"
    while not (output.exists() and "begun" in output.read_text()):
        assert time.monotonic() < deadline, output.read_text() if output.exists() else terminal.screen()
        time.sleep(0.1)
    both = jobs(unstuck)
    assert len(both) == 2
    for job in both:
        for number in (1, 2):
            job.send_signal(number)
    terminal.wait_for(r"^waited=0\.$")
    assert output.read_text() == "['SIG_IGN', 'SIG_IGN']\nbegun\nended\n"
