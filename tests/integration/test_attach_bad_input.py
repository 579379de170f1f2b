"""`unstuck attach` with what people get wrong and what processes do meanwhile: the words, the code, and no harm."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.integration.attach_stage import (
    LIMIT,
    NOBODY,
    SLEEPER,
    Said,
    ask,
    first_line,
    needs_nobody,
    python_without_py_spy,
    unharmed,
)
from tests.integration.observe_scene import PATIENCE, Scene, scene
from unstuck.observer import proc
from unstuck.observer.stacks import find_py_spy

__all__ = ["scene"]

QUICK = ("--seconds", "0.3")


@pytest.fixture
def sleeper(scene: Scene) -> subprocess.Popen[bytes]:
    process = scene.start(SLEEPER, stdout=subprocess.PIPE)
    assert first_line(process) == "ready"
    return process


def until(happens: object, what: str = "") -> None:
    deadline = time.monotonic() + PATIENCE
    assert callable(happens)
    while not happens():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


# --- what is no process --------------------------------------------------------------------------------------

WRONG = {
    "no such pid": (["4194304"], "there is no process 4194304"),
    "a name": (["abc"], "abc is not a pid"),
    "below zero": (["--", "-5"], "-5 is not a pid"),
    "zero": (["0"], "0 is not a pid"),
    "too large": (["99999999999999999999"], "is not a pid"),
    "a thread of the kernel": (["2"], "process 2"),
}


@pytest.mark.parametrize("case", WRONG)
def test_pid_that_cannot_be_looked_at(case: str) -> None:
    words, expected = WRONG[case]
    said = ask(*words)
    assert said.code == 2, said
    assert expected in said.err
    assert "next: unstuck attach" in said.err


@pytest.mark.parametrize("words", [["-5"], ["5", "6"], ["--seconds", "0", "1"], ["--seconds", "x", "1"]])
def test_line_that_cannot_be_parsed(words: list[str]) -> None:
    said = ask(*words)
    assert said.code == 2, said
    assert "unstuck" in said.err


def test_report_into_a_missing_folder(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    said = ask(sleeper.pid, "--report", tmp_path / "none" / "r.json")
    assert said.code == 2
    assert "does not exist" in said.err
    assert unharmed(sleeper.pid)


def test_zombie_and_what_is_not_python(scene: Scene) -> None:
    process = scene.start(
        """
        import os, subprocess, time
        plain = subprocess.Popen(["sleep", "600"])
        child = os.fork()
        if child == 0:
            os._exit(3)
        time.sleep(0.2)
        print(child, plain.pid, flush=True)
        time.sleep(600)
        """,
        stdout=subprocess.PIPE,
    )
    zombie, plain = map(int, first_line(process).split())
    said = ask(zombie)
    assert said.code == 2
    assert f"process {zombie} has ended already: it is a zombie" in said.err
    assert f"next: unstuck attach {process.pid}" in said.err
    said = ask(plain)
    assert said.code == 2
    assert f"process {plain} is not Python: sleep 600" in said.err
    assert unharmed(plain)
    assert unharmed(process.pid)


@needs_nobody
def test_process_of_another_user_that_does_not_seem_to_be_python(scene: Scene) -> None:
    process = scene.start("import os; os.execvp('sleep', ['sleep', '600'])")
    until(lambda: proc.command(process.pid) == ("sleep", "600"))
    said = ask(process.pid, prefix=NOBODY)
    assert said.code == 2
    assert "belongs to root" in said.err
    assert "next: sudo" in said.err
    assert unharmed(process.pid)


# --- what happens meanwhile ----------------------------------------------------------------------------------

NOTING = """
    #!/bin/sh
    echo look >> {note}
    exec {py_spy} "$@"
"""
"""A py-spy that tells the test that a look has begun."""


def test_ends_while_it_is_looked_at(scene: Scene) -> None:
    note = scene.folder / "looked"
    process = scene.start(
        f"""
        import os, time
        print("ready", flush=True)
        while not os.path.exists({str(note)!r}):
            time.sleep(0.05)
        time.sleep(0.7)
        """,
        stdout=subprocess.PIPE,
    )
    first_line(process)
    python, env = python_without_py_spy(scene.folder, NOTING.format(note=note, py_spy=find_py_spy()))
    said = ask(process.pid, "--seconds", "20", python=python, env=env)
    assert said.code == 0, said
    assert "The run ended while it was looked at." in said.out


def test_stopped_by_a_signal(sleeper: subprocess.Popen[bytes]) -> None:
    os.kill(sleeper.pid, signal.SIGSTOP)
    said = ask(sleeper.pid, *QUICK)
    assert said.code == 0, said
    assert "It is stopped by SIGSTOP." in said.out
    assert f"kill -CONT {sleeper.pid}" in said.flat
    stat = proc.stat(sleeper.pid)
    assert stat is not None
    assert stat.state == "T", "left as it was"
    os.kill(sleeper.pid, signal.SIGCONT)
    until(lambda: unharmed(sleeper.pid))


def test_under_a_debugger(scene: Scene, sleeper: subprocess.Popen[bytes]) -> None:
    tracer = scene.start(
        """
        import ctypes, os, sys, time
        libc = ctypes.CDLL(None, use_errno=True)
        pid = int(sys.argv[1])
        assert libc.ptrace(16, pid, 0, 0) == 0, os.strerror(ctypes.get_errno())
        os.waitpid(pid, 0x40000000)
        print("holds it", flush=True)
        time.sleep(600)
        """,
        str(sleeper.pid),
        stdout=subprocess.PIPE,
    )
    if first_line(tracer) != "holds it":
        pytest.skip("ptrace is not allowed here")
    said = ask(sleeper.pid, *QUICK)
    assert said.code == 0, said
    assert "It is held by a debugger" in said.out
    assert f"(pid {tracer.pid})" in said.flat
    tracer.kill()
    until(lambda: unharmed(sleeper.pid), "goes on when the debugger is gone")


def test_two_hundred_processes(scene: Scene) -> None:
    process = scene.start(
        """
        import os, time
        for _ in range(200):
            if os.fork() == 0:
                time.sleep(600)
        print("ready", flush=True)
        time.sleep(600)
        """,
        stdout=subprocess.PIPE,
    )
    first_line(process)
    said = ask(process.pid, "--seconds", "0.5")
    assert said.code in (0, 1), said
    assert "200 × helper" in said.out
    assert len(said.out.splitlines()) < 40, "a page, not a list"
    assert unharmed(process.pid)


def test_interrupted_it_says_what_it_knows(scene: Scene, sleeper: subprocess.Popen[bytes]) -> None:
    note = scene.folder / "looked"
    python, env = python_without_py_spy(scene.folder, NOTING.format(note=note, py_spy=find_py_spy()))
    asking = subprocess.Popen(
        [python, "-m", "unstuck", "attach", str(sleeper.pid), "--seconds", "300"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        until(note.exists)
        time.sleep(1.5)
        os.killpg(asking.pid, signal.SIGINT)
        out, err = asking.communicate(timeout=LIMIT)
    finally:
        asking.kill()
        asking.wait()
    said = Said(asking.returncode, out.decode(), err.decode())
    assert said.code in (0, 1), said
    assert "Traceback" not in said.err
    assert "sleeping" in said.out
    assert unharmed(sleeper.pid)


def test_at_a_terminal_it_says_that_it_looks_and_wipes_that_line(sleeper: subprocess.Popen[bytes]) -> None:
    reader, screen = os.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    try:
        words = [sys.executable, "-m", "unstuck", "attach", str(sleeper.pid), *QUICK]
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=screen, timeout=LIMIT)
        shown = os.read(reader, 1 << 16).decode()
    finally:
        os.close(reader)
        os.close(screen)
    line = f"unstuck: looking at process {sleeper.pid} for 0.3 s; Ctrl-C shows what is known"
    first, *_, wiped = shown.replace("\x1b[K", "").split("\r")[1:]
    assert (first, wiped) == (line, "")


def test_watched_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-m", "unstuck", "attach", str(sleeper.pid), "--watch", *QUICK],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert watching.stdout is not None
        lines = iter(watching.stdout.readline, b"")
        assert any(f"pid {sleeper.pid}".encode() in line for line in lines)
        sleeper.kill()
        sleeper.wait()
        rest, _ = watching.communicate(timeout=LIMIT)
    finally:
        watching.kill()
        watching.wait()
    assert watching.returncode in (0, 1)
    assert b"is gone" in rest or b"ended" in rest


# --- without py-spy ------------------------------------------------------------------------------------------


def test_py_spy_that_is_not_installed(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    python, env = python_without_py_spy(tmp_path)
    said = ask(sleeper.pid, *QUICK, python=python, env=env)
    assert said.code == 0, said
    assert "Its Python stacks cannot be seen from here." in said.out
    assert "sleeping" in said.out, "the kernel still tells"
    assert f"next: {python} -m pip install py-spy" in said.flat
    assert unharmed(sleeper.pid)


@pytest.mark.slow
def test_py_spy_that_hangs(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    python, env = python_without_py_spy(tmp_path, "#!/bin/sh\nsleep 617 &\nexec sleep 617\n")
    said = ask(sleeper.pid, *QUICK, python=python, env=env)
    assert said.code == 0, said
    assert "py-spy: no answer within" in said.flat
    assert "sleeping" in said.out
    until(lambda: not [pid for pid in proc.numbers("/proc") if proc.command(pid) == ("sleep", "617")])
    assert unharmed(sleeper.pid)


# --- JSON ----------------------------------------------------------------------------------------------------


def test_json_is_json_on_the_stream_and_in_the_file(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    said = ask(sleeper.pid, *QUICK, "--json", "--report", report)
    assert said.code == 0, said
    assert said.plain["attach"]["state"] in ("running", "unclear")
    assert said.plain["attach"]["doing"].startswith("sleeping")
    assert [process["pid"] for process in said.plain["attach"]["processes"]] == [sleeper.pid]
    assert report.read_text() == said.out
    assert said.err == ""
