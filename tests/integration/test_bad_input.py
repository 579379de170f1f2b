"""What people get wrong and what machines refuse: a clear message, the right exit code, and the run unharmed."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Outcome, Runner

WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Root keeps its name and loses what makes it root: it may do what an ordinary owner may."""
OK = "print('ran'); open('ran', 'w').close()"

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"), reason="needs root and util-linux"
)


def write(unstuck: Runner, text: str, name: str = "train.py") -> Path:
    path = unstuck.folder / name
    path.write_text(textwrap.dedent(text))
    return path


def ask(
    unstuck: Runner, *words: str | Path, prefix: tuple[str, ...] = (), limit: float = 60, **options: Any
) -> Outcome:
    """`PREFIX python -m unstuck WORDS…`, standard input empty unless given."""
    options.setdefault("cwd", unstuck.folder)
    options.setdefault("stdin", subprocess.DEVNULL)
    env = {**os.environ, "UNSTUCK_TEST_MARK": str(unstuck.folder), **options.pop("env", {})}
    began = time.monotonic()
    process = subprocess.Popen(
        [*prefix, sys.executable, "-m", "unstuck", *map(str, words)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )
    unstuck.processes.append(process)
    report = next((Path(words[n + 1]) for n, word in enumerate(words[:-1]) if word == "--report"), Path("none"))
    return unstuck.finish(process, report, began, limit)


def off(outcome: Outcome) -> dict[str, str]:
    return {item["probe"]: item["why"] for item in outcome.report["probes_off"]}


# --- the command line ----------------------------------------------------------------------------------------

WRONG = {
    "no script": ([], "no script given", "unstuck run train.py"),
    "no such script": (["trian.py"], "no such script: trian.py", "unstuck run train.py"),
    "folder": (["data"], "data is a folder", "ls data"),
    "shell script": (["job.sh"], "job.sh is not a Python script", "bash job.sh"),
    "notebook": (["net.ipynb"], "net.ipynb is not a Python script", "nbconvert"),
    "binary": (["weights.py"], "weights.py is not a Python script", "unstuck run train.py"),
    "python -E": (["--", "python", "-E", "train.py"], "-E", "-- python train.py"),
    "python -I": (["--", sys.executable, "-I", "train.py"], "-I", f"-- {sys.executable} train.py"),
    "python -S": (["--", "python3", "-u", "-S", "train.py"], "-S", "-- python3 -u train.py"),
    "python -IS": (["--", "python", "-IS", "train.py"], "-IS", "-- python train.py"),
    "python -X dev -E": (["--", "python", "-X", "dev", "-E", "train.py"], "-E", "-- python -X dev train.py"),
    "python -W error -I": (["--", "python", "-Werror", "-I", "train.py"], "-I", "unstuck run"),
    "nothing after --": (["--"], "nothing follows --", "torchrun"),
    "no such command": (["--", "torchrunn", "train.py"], "no such command: torchrunn", "unstuck env"),
    "no interpreter line": (["--", "./blob"], "cannot start ./blob: Exec format error", "unstuck env"),
    "no such interpreter": (["--python", "pythonn", "train.py"], "pythonn", "unstuck env"),
    "stall-after word": (["--stall-after", "soon", "train.py"], "soon", "--stall-after 60"),
    "stall-after below 0": (["--stall-after=-1", "train.py"], "-1", "--stall-after 60"),
    "report into missing folder": (["--report", "out/r.json", "train.py"], "out does not exist", "mkdir -p"),
    "report of unknown kind": (["--report", "r.xyz", "train.py"], ".xyz", ""),
    "report is a folder": (["--report", "data.json", "train.py"], "it is a folder", ""),
}


@pytest.mark.parametrize("case", WRONG)
def test_usage_error_says_what_to_do(unstuck: Runner, case: str) -> None:
    words, said, next_command = WRONG[case]
    write(unstuck, OK)
    (unstuck.folder / "data").mkdir()
    (unstuck.folder / "data.json").mkdir()
    (unstuck.folder / "job.sh").write_text("true\n")
    (unstuck.folder / "net.ipynb").write_text("{}")
    (unstuck.folder / "weights.py").write_bytes(b"\x80\0\0weights")
    (unstuck.folder / "blob").write_bytes(b"\x7fELF\0\0no program")
    (unstuck.folder / "blob").chmod(0o755)
    outcome = ask(unstuck, "run", *words)
    assert outcome.code == 2, outcome
    assert said in outcome.err
    assert next_command in outcome.err
    assert not next_command or "next: " in outcome.err
    assert "Traceback" not in outcome.err
    assert not (unstuck.folder / "ran").exists()


def test_usage_error_in_a_setting_names_its_place(unstuck: Runner) -> None:
    outcome = ask(unstuck, "run", write(unstuck, OK), env={"UNSTUCK_STALL_AFTER": "soon"})
    assert outcome.code == 2
    assert "UNSTUCK_STALL_AFTER in the environment is 'soon'" in outcome.err
    assert "next: " in outcome.err
    assert not (unstuck.folder / "ran").exists()


@needs_root
def test_script_that_may_not_be_read_and_report_that_may_not_be_written(unstuck: Runner) -> None:
    script = unstuck.folder / "train.py"
    script.write_text(OK)
    script.chmod(0)
    unread = ask(unstuck, "run", script, prefix=WITHOUT_RIGHTS)
    assert unread.code == 2
    assert "Permission denied" in unread.err
    assert "next: ls -l" in unread.err
    script.chmod(0o644)
    unstuck.folder.chmod(0o555)
    unwritten = ask(unstuck, "run", "--report", unstuck.folder / "r.json", script, prefix=WITHOUT_RIGHTS)
    assert unwritten.code == 2
    assert "Permission denied" in unwritten.err
    assert "ran" not in unwritten.out


# --- the same as python itself -------------------------------------------------------------------------------

SAME: dict[str, str] = {
    "ends well": "print('done')",
    "status 1": "import sys; print('one'); sys.exit(1)",
    "status 7": "import sys; sys.exit(7)",
    "os._exit": "import os; print('five', flush=True); os._exit(5)",
    "a message": "import sys; sys.exit('no data found')",
    "syntax error": "def broken(:\n    pass",
    "exception": "raise KeyError('gone')",
    "stdin to its end": "import sys; print(sys.stdin.read().upper())",
    "own stdout": """
        import io, sys
        sys.stdout = io.StringIO()
        print('held back')
        sys.__stdout__.write(sys.stdout.getvalue())
    """,
    "closed stdout": "import sys; print('first', flush=True); sys.stdout.close()",
    "SIGKILL": "import os; os.kill(os.getpid(), 9)",
    "SIGTERM": "import os; os.kill(os.getpid(), 15)",
    "SIGSEGV": """
        import os, resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would be unstuck's own
        os.kill(os.getpid(), 11)
    """,
    "what it sees": """
        import os, sys
        print(sys.argv, os.getcwd(), __file__, __name__, sys.path, sys.flags)
        print(sorted(m for m in sys.modules if not m.startswith(("_unstuck", "sitecustomize"))) == [] or 'modules')
        print(sorted(os.listdir('/proc/self/fd'), key=int)[:4])
    """,
    "closes what it does not know": """
        import os, sys
        os.closerange(3, 4096)
        own = [os.open('/dev/null', os.O_RDONLY) for _ in range(500)]
        for _ in range(2):
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                break
        changed = [n for n in own if os.path.realpath(f'/proc/self/fd/{n}') != '/dev/null']
        print(own[0], own[-1], changed, flush=True)
    """,
    "the only thread": "import threading; print([t.name for t in threading.enumerate()], threading.active_count())",
}


DIED_OF = {
    "syntax error": ["uncaught-exception"],
    "exception": ["uncaught-exception"],
    "SIGKILL": ["ended-from-outside"],
    "SIGTERM": ["ended-from-outside"],
    "SIGSEGV": ["native-crash"],
}


@pytest.mark.parametrize("case", SAME)
def test_runs_as_python_would(unstuck: Runner, case: str) -> None:
    script = write(unstuck, SAME[case])
    options: dict[str, Any] = {"cwd": unstuck.folder, "capture_output": True, "text": True}
    plain = subprocess.run([sys.executable, script, "-x", "two words"], input="hi\n", check=False, **options)
    source = unstuck.folder / "input"
    source.write_text("hi\n")
    report = unstuck.folder / "report.json"
    with source.open() as given:
        unlimited = ("sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh")
        outcome = ask(unstuck, "run", "--report", report, script, "-x", "two words", stdin=given, prefix=unlimited)
    assert outcome.code == plain.returncode
    assert outcome.out == plain.stdout
    assert outcome.err.startswith(plain.stderr)
    assert "Traceback" not in outcome.err.removeprefix(plain.stderr)
    assert not list(unstuck.folder.glob("core*"))
    assert outcome.report["run"]["exit_code"] == (plain.returncode if plain.returncode >= 0 else None)
    assert outcome.report["run"]["signal"] == (-plain.returncode if plain.returncode < 0 else None)
    assert outcome.report["probes_off"] == []
    assert outcome.rules == DIED_OF.get(case, [])


def test_reads_a_pipe_to_its_end(unstuck: Runner) -> None:
    script = write(unstuck, "import sys; print(len(sys.stdin.read()))")
    process = unstuck.start("run", script)
    assert process.stdin is not None
    process.stdin.write(b"x" * 200_000)
    process.stdin.close()
    assert unstuck.finish(process, Path("none"), 0.0, 60).out == "200000\n"


def test_scripts_that_are_no_plain_files(unstuck: Runner) -> None:
    """Python runs a compiled script, a folder with a __main__, and a pipe, of which nothing may be read before."""
    script = write(unstuck, "print('compiled')")
    compiled = py_compile.compile(str(script), cfile=str(unstuck.folder / "train.pyc"))
    assert compiled
    assert ask(unstuck, "run", compiled).out == "compiled\n"
    (unstuck.folder / "package").mkdir()
    write(unstuck, "print('package')", "package/__main__.py")
    assert ask(unstuck, "run", "package").out == "package\n"
    piped = ask(unstuck, "run", "/dev/fd/0", stdin=_pipe_with("print('piped')\n"))
    assert (piped.code, piped.out) == (0, "piped\n")


def _pipe_with(text: str) -> int:
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    return reading


@pytest.mark.parametrize("stream", ["1", "2"])
def test_closed_output_of_ours(unstuck: Runner, stream: str) -> None:
    """`unstuck run train.py >&-`, as some job systems start things."""
    script = write(unstuck, "import sys, time; time.sleep(1.2); sys.exit(7)")
    closing = ("sh", "-c", f'exec "$@" {stream}>&-', "sh")
    assert ask(unstuck, "run", script, prefix=closing).code == 7


def test_started_with_sigchld_ignored(unstuck: Runner) -> None:
    """As some job systems start things: the kernel then throws exit statuses away."""
    script = write(
        unstuck, "import signal, sys; print(signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN); sys.exit(7)"
    )
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    outcome = ask(unstuck, "run", script, prefix=(sys.executable, "-c", ignoring))
    assert (outcome.code, outcome.out) == (7, "True\n"), outcome.err


# --- environments --------------------------------------------------------------------------------------------


def test_own_sitecustomize_still_runs_once(unstuck: Runner) -> None:
    (unstuck.folder / "site").mkdir()
    write(unstuck, "open('log', 'a').write(__file__ + '\\n')", "site/sitecustomize.py")
    script = write(unstuck, "import sitecustomize; print(sitecustomize.__file__, sitecustomize.__spec__.origin)")
    place = str(unstuck.folder / "site")
    env = {**os.environ, "PYTHONPATH": place}
    plain = subprocess.run(
        [sys.executable, script], env=env, capture_output=True, text=True, check=True, cwd=unstuck.folder
    )
    # The supervisor is a Python of its own and runs it too, so it is given to the script alone.
    log = unstuck.folder / "log"
    log.unlink()
    outcome = ask(unstuck, "run", "--", "env", f"PYTHONPATH={_site()}:{place}", sys.executable, script)
    assert outcome.out == plain.stdout
    assert log.read_text() == f"{place}/sitecustomize.py\n"


def _site() -> Path:
    from unstuck.supervise.child import SITE

    return Path(SITE)


RECORDED = "import sys; print('recorded' if sys.modules['_unstuck_recorder.flight'].recording else 'off')"


def test_children_are_recorded_though_the_script_rewrites_pythonpath(unstuck: Runner) -> None:
    script = write(
        unstuck,
        f"""
        import multiprocessing, os, subprocess, sys

        def work():
            print('spawned', 'recorded' if sys.modules['_unstuck_recorder.flight'].recording else 'off', flush=True)

        def ask():
            subprocess.run([sys.executable, '-c', {RECORDED!r}], check=True)

        if __name__ == '__main__':
            os.environ['PYTHONPATH'] = '/my/own'
            print(os.environ['PYTHONPATH'], flush=True)
            ask()
            child = multiprocessing.get_context('spawn').Process(target=work)
            child.start()
            child.join()
            del os.environ['PYTHONPATH']
            print('PYTHONPATH' in os.environ, flush=True)
            ask()
        """,
    )
    outcome = unstuck.run(script, limit=60)
    assert outcome.out.split("\n") == ["/my/own", "recorded", "spawned recorded", "False", "recorded", ""]
    assert (outcome.code, outcome.report["probes_off"]) == (0, [])


def test_child_with_an_environment_of_its_own(unstuck: Runner) -> None:
    script = write(
        unstuck,
        """
        import subprocess, sys
        ask = "import sys; print('_unstuck_recorder' in sys.modules, flush=True)"
        for options in ([], ['-E'], ['-I'], ['-S']):
            subprocess.run([sys.executable, *options, '-c', ask], env={} if not options else None, check=True)
        """,
    )
    outcome = unstuck.run(script, limit=60)
    assert outcome.out == "True\n" + "False\n" * 3
    assert (outcome.code, outcome.loud) == (0, [])


def test_nothing_recorded_is_said(unstuck: Runner) -> None:
    """`env python -I` is not seen through beforehand; the report says that nothing came."""
    report = unstuck.folder / "report.json"
    script = write(unstuck, "import sys; sys.exit(6)")
    outcome = ask(unstuck, "run", "--report", report, "--", "env", sys.executable, "-I", script)
    assert outcome.code == 6
    assert "flight file" in off(outcome)["recorder"]


def test_unstuck_in_an_environment_without_torch(unstuck: Runner, tmp_path: Path) -> None:
    """As with pipx: our own environment has no torch, the training's has."""
    venv = tmp_path / "pipx"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    here = Path(psutil.__file__).parent.parent
    packages = next(venv.glob("lib/python*/site-packages"))
    (venv / "bin" / "py-spy").symlink_to(Path(sys.executable).parent / "py-spy")
    for name in ("rich", "jinja2", "markupsafe", "markdown_it", "mdurl", "pygments"):
        (packages / name).symlink_to(here / name)
    (packages / "unstuck").symlink_to(_site().parent.parent)
    script = write(
        unstuck,
        """
        import sys, torch
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            (weight * weight).sum().backward()
            optimizer.step()
        print(sys.executable, round(weight.sum().item(), 3))
        """,
    )
    report = unstuck.folder / "report.json"
    python = str(venv / "bin" / "python")
    command = [python, "-m", "unstuck", "run", "--python", sys.executable, "--report", str(report), str(script)]
    assert subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 1
    env = {**os.environ, "UNSTUCK_TEST_MARK": str(unstuck.folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, cwd=unstuck.folder, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(sys.executable)
    told = json.loads(report.read_text())
    assert told["run"]["steps"] == 3
    assert told["probes_off"] == []


# --- places that cannot be written ---------------------------------------------------------------------------


def test_script_deletes_its_working_directory(unstuck: Runner, tmp_path: Path) -> None:
    place = tmp_path / "doomed"
    place.mkdir()
    report = tmp_path / "report.json"
    script = write(unstuck, "import os, shutil, sys; shutil.rmtree(os.getcwd()); print('gone'); sys.exit(3)")
    outcome = ask(unstuck, "run", "--report", report, script, cwd=place)
    assert (outcome.code, outcome.out) == (3, "gone\n")
    assert "run folder" in off(outcome)
    assert "No such file or directory" in outcome.err
    assert "Traceback" not in outcome.err


def test_working_directory_gone_before_the_start(unstuck: Runner, tmp_path: Path) -> None:
    script = write(unstuck, "import sys; print('ran'); sys.exit(3)")
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "gone").mkdir()
    leave = ("sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh")
    options: dict[str, Any] = {"prefix": leave, "env": {"TMPDIR": str(kept)}, "cwd": tmp_path / "gone"}
    outcome = ask(unstuck, "run", script, **options)
    assert (outcome.code, outcome.out) == (3, "ran\n")
    assert f"this run is saved in {kept}" in outcome.err
    (tmp_path / "gone").mkdir()
    relative = ask(unstuck, "run", "--report", "r.json", script, **options)
    assert relative.code == 2
    assert "working directory is gone" in relative.err
    assert "next: " in relative.err


def test_script_deletes_the_flight_files(unstuck: Runner) -> None:
    script = write(
        unstuck,
        """
        import os, shutil, sys, time
        time.sleep(0.7)
        shutil.rmtree(os.environ['UNSTUCK_FLIGHT_DIR'])
        time.sleep(0.7)
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        sys.exit(3)
        """,
    )
    outcome = unstuck.run(script, limit=60)
    assert outcome.code == 3
    assert "recorder of a child" in off(outcome)
    assert "unstuck" not in outcome.err


@needs_root
def test_read_only_working_directory(unstuck: Runner) -> None:
    script = unstuck.folder / "train.py"
    script.write_text("import os, sys; print(os.access('.', os.W_OK)); sys.exit(7)")
    kept = unstuck.folder / "kept"
    kept.mkdir()
    unstuck.folder.chmod(0o555)
    outcome = ask(unstuck, "run", "train.py", prefix=WITHOUT_RIGHTS, env={"TMPDIR": str(kept)})
    assert (outcome.code, outcome.out) == (7, "False\n")
    assert "cannot create a .unstuck folder here (Permission denied); this run is saved in" in outcome.err
    (told,) = kept.glob("unstuck-*/run.json")
    assert json.loads(told.read_text())["exit_code"] == 7


def inside(*mounts: str) -> tuple[str, ...]:
    """A prefix that runs a command in a mount namespace of its own."""
    return ("unshare", "-m", "sh", "-c", "set -e; " + "; ".join(mounts) + '; exec "$@"', "sh")


@needs_root
@pytest.mark.skipif(sys.executable.startswith("/tmp/"), reason="hides /tmp, and with it this very interpreter")
def test_no_room_for_flight_files(unstuck: Runner) -> None:
    places = (os.environ["TMPDIR"], "/tmp", "/var/tmp", "/dev/shm")
    small = inside("mkdir -p /tmp/keep", *(f"mount -t tmpfs -o size=64k none {place}" for place in places[::-1]))
    if str(unstuck.folder).startswith("/tmp/"):  # it would be hidden below the new /tmp
        small = inside(
            f"mkdir -p /mnt/work && mount --bind {unstuck.folder} /mnt/work",
            *(f"mount -t tmpfs -o size=64k none {place}" for place in places[1:]),
            f"mkdir -p {unstuck.folder} {places[0]} && mount --bind /mnt/work {unstuck.folder} && cd {unstuck.folder}",
        )
    report = unstuck.folder / "report.json"
    script = write(unstuck, "import os, sys; print(os.environ.get('UNSTUCK_FLIGHT_DIR')); sys.exit(7)")
    outcome = ask(unstuck, "run", "--report", report, script, prefix=small)
    assert (outcome.code, outcome.out) == (7, "None\n"), outcome.err
    assert "recording is off" in outcome.err
    assert "No space left on device" in outcome.err
    assert "set TMPDIR" in outcome.err
    assert "No space left" in off(outcome)["recorder"]


FILLS_THE_DISK = """
import os, sys
import torch
from torch.utils.data import DataLoader, Dataset

place = os.environ['TMPDIR']
fill = os.open(place + '/fill', os.O_WRONLY | os.O_CREAT)
size = 1 << 16
while size:
    try:
        os.write(fill, b'x' * size)
    except OSError:
        size //= 2


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([float(index * index)])


weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.001)
for batch in DataLoader(Squares(), batch_size=2, num_workers=2):
    (weight * batch).mean().backward()
    optimizer.step()
print(round(weight.item(), 4))
sys.exit(7)
"""


@needs_root
def test_disk_fills_up_before_the_workers_start(unstuck: Runner, tmp_path: Path) -> None:
    """Their flight files cannot be had: they run on unrecorded, and it is said."""
    place = tmp_path / "small"
    place.mkdir()
    small = inside(f"mount -t tmpfs -o size=2600k none {place}")
    report = unstuck.folder / "report.json"
    script = write(unstuck, FILLS_THE_DISK)
    env = {"TMPDIR": str(place), "OMP_NUM_THREADS": "1"}
    outcome = ask(unstuck, "run", "--report", report, script, prefix=small, env=env)
    assert (outcome.code, outcome.out) == (7, "0.895\n"), outcome.err
    assert "No space left" in off(outcome)["recorder of a child"]
    assert outcome.report["run"]["steps"] == 4


@needs_root
def test_without_proc(unstuck: Runner) -> None:
    hidden = inside("mount -t tmpfs none /proc")
    report = unstuck.folder / "report.json"
    script = write(
        unstuck, "import os, sys, time; assert not os.path.exists('/proc/self'); time.sleep(1.5); sys.exit(7)"
    )
    outcome = ask(unstuck, "run", "--report", report, script, prefix=hidden)
    assert outcome.code == 7, outcome.err
    assert "/proc" in off(outcome)["recorder"]
    assert "Traceback" not in outcome.err


@needs_root
def test_signals_are_passed_on_without_proc(unstuck: Runner) -> None:
    script = write(
        unstuck,
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
        print('ready', flush=True)
        time.sleep(60)
        """,
    )
    process = subprocess.Popen(
        [*inside("mount -t tmpfs none /proc"), sys.executable, "-m", "unstuck", "run", script],
        cwd=unstuck.folder,
        env={**os.environ, "UNSTUCK_TEST_MARK": str(unstuck.folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    unstuck.processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 9


@needs_root
def test_without_ptrace_the_stacks_come_from_faulthandler(unstuck: Runner) -> None:
    script = unstuck.folder / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import ctypes, threading
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: now nobody but root may look

            def wait_for_ever():
                lock = threading.Lock()
                lock.acquire()
                lock.acquire()

            wait_for_ever()
            """
        )
    )
    report = unstuck.folder / "report.json"
    flags = ("--stall-after", "1", "--report", report)
    outcome = ask(unstuck, "run", *flags, script, prefix=WITHOUT_RIGHTS, limit=10)  # then comes Ctrl-C
    assert outcome.loud, outcome.err
    first = outcome.loud[0]
    assert first["seen_by"] == "faulthandler", first
    assert first["where"]["function"] == "wait_for_ever"
    assert "ermission denied" in outcome.err
    assert "ermission denied" in off(outcome)["py-spy"]


# --- processes that come and go ------------------------------------------------------------------------------


def test_daemon_outlives_the_run(unstuck: Runner) -> None:
    script = write(
        unstuck,
        """
        import os, sys, time
        if os.fork():
            os.wait()
            print('started')
            sys.exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open('/dev/null', os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        open('pid', 'w').write(str(os.getpid()))
        time.sleep(90)
        """,
    )
    outcome = unstuck.run(script, limit=60)
    pid = unstuck.folder / "pid"
    deadline = time.monotonic() + 20
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    daemon = psutil.Process(int(pid.read_text()))
    try:
        assert (outcome.code, outcome.out, outcome.loud) == (0, "started\n", [])
        assert daemon.is_running()
        assert outcome.seconds < 60
    finally:
        daemon.kill()


def test_hundreds_of_children_leave_nothing_behind(unstuck: Runner) -> None:
    """50 children, ten times over, half of them ended by SIGTERM as pools do: neither files nor memory add up."""
    script = write(
        unstuck,
        """
        import os, signal, time

        def memory():
            with open(f'/proc/{os.getppid()}/status') as status:
                return int(next(line for line in status if line.startswith('VmRSS')).split()[1])

        for turn in range(10):
            ready, go = os.pipe()
            children = []
            for number in range(50):
                pid = os.fork()
                if pid == 0:
                    os.write(go, b'.')
                    if number % 2:
                        time.sleep(60)
                    os._exit(0)
                children.append(pid)
            for _ in children:
                os.read(ready, 1)
            for pid in children[1::2]:
                os.kill(pid, signal.SIGTERM)
            for pid in children:
                os.waitpid(pid, 0)
            os.close(ready)
            os.close(go)
            time.sleep(0.8)
            until = time.monotonic() + 20  # a busy machine looks at the folder late
            while len(os.listdir(os.environ['UNSTUCK_FLIGHT_DIR'])) >= 1500 and time.monotonic() < until:
                time.sleep(0.2)
            print(len(os.listdir(os.environ['UNSTUCK_FLIGHT_DIR'])), memory(), os.getpid(), flush=True)
        """,
    )
    outcome = unstuck.run(script, limit=240)
    assert (outcome.code, outcome.loud, outcome.report["probes_off"]) == (0, [], []), outcome.err
    turns = [tuple(map(int, line.split())) for line in outcome.out.splitlines()]
    files, memory, pids = zip(*turns, strict=True)
    assert len(turns) == 10
    assert max(files) < 1500, "of 2,250 written"
    assert memory[9] - memory[5] < 20_000, "kB"
    (saved,) = unstuck.folder.glob(".unstuck/*/case.json")
    assert pids[0] in {flight["pid"] for flight in json.loads(saved.read_text())["flights"]}
