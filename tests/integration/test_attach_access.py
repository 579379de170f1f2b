"""Which tree a pid leads to, and what is seen of it as root, as its owner, as another, and without ptrace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.attach_stage import (
    NO_PTRACE,
    NOBODY,
    OWN_PIDS,
    SLEEPER,
    ask,
    first_line,
    needs_namespace,
    needs_nobody,
    needs_setpriv,
    unharmed,
)
from tests.integration.observe_scene import Scene, kinds, scene
from unstuck.attach.target import resolve
from unstuck.errors import UsageError
from unstuck.observer import proc
from unstuck.observer.descriptors import Descriptors
from unstuck.observer.look import Observer
from unstuck.observer.sockets import Sockets
from unstuck.observer.threads import ThreadReading
from unstuck.observer.tree import Tree
from unstuck.observer.waits import Waits

__all__ = ["scene"]

QUICK = ("--seconds", "0.3")
LOCKED = """
    import fcntl, os, sys, time
    file = open("run.lock", "a")
    if len(sys.argv) > 1:
        fcntl.flock(file, fcntl.LOCK_EX)
    print("ready", flush=True)
    fcntl.flock(file, fcntl.LOCK_EX)
    time.sleep(600)
"""


def started(scene: Scene, script: str, *words: str, **options: object) -> subprocess.Popen[bytes]:
    return scene.start(script, *words, stdout=subprocess.PIPE, **options)


def as_nobody(scene: Scene, code: str) -> subprocess.Popen[bytes]:
    return started(scene, f"import os; os.execvp('setpriv', {[*NOBODY, sys.executable, '-c', code]!r})")


# --- which tree ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_worker_leads_to_the_whole_run_and_no_further(scene: Scene, way: str) -> None:
    """The test itself is a Python process that started the run: that one is no part of it."""
    process = started(
        scene,
        f"""
        import multiprocessing, os, time
        def work(queue):
            queue.put(os.getpid())
            time.sleep(600)
        if __name__ == "__main__":
            context = multiprocessing.get_context("{way}")
            queue = context.Queue()
            context.Process(target=work, args=(queue,), daemon=True).start()
            print(queue.get(), flush=True)
            time.sleep(600)
        """,
    )
    worker = int(first_line(process))
    target = resolve(worker)
    assert (target.pid, target.root) == (worker, process.pid)
    assert f"belongs to the run of pid {process.pid}" in target.note
    assert resolve(process.pid).note == ""


def test_rank_leads_to_its_launcher(scene: Scene) -> None:
    launcher = scene.folder / "torchrun"
    launcher.write_text(
        "import os, subprocess, sys, time\n"
        "code = 'import time; time.sleep(600)'\n"
        "ranks = [subprocess.Popen([sys.executable, '-c', code], env={**os.environ, 'RANK': r, 'WORLD_SIZE': '2'})\n"
        "         for r in '01']\n"
        "print(*[rank.pid for rank in ranks], flush=True)\n"
        "time.sleep(600)\n"
    )
    process = started(scene, f"import os, sys; os.execv(sys.executable, [sys.executable, {str(launcher)!r}])")
    ranks = [int(word) for word in first_line(process).split()]
    wanted = [("launcher", None), ("rank", 0), ("rank", 1)]  # a process just born has no environment yet
    scene.until(Observer(process.pid), lambda look: [(seen.role, seen.rank) for seen in look.processes] == wanted)
    assert [resolve(rank).root for rank in ranks] == [process.pid, process.pid]


def test_program_started_by_another_python_is_a_run_of_its_own(scene: Scene) -> None:
    process = started(
        scene,
        """
        import subprocess, sys, time
        print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
        time.sleep(600)
        """,
    )
    child = int(first_line(process))
    assert resolve(child).root == child


def test_shell_around_it_and_a_shell_around_several(scene: Scene) -> None:
    sleep = f"{sys.executable} -c 'import time; time.sleep(600)'"
    one = scene.start(f"""import os; os.execvp("sh", ["sh", "-c", {sleep + "; true"!r}])""")
    scene.until(Observer(one.pid), lambda look: [seen.role for seen in look.processes] == ["launcher", "main"])
    assert (resolve(one.pid).root, resolve(one.pid).note) == (one.pid, "")
    two = scene.start(f"""import os; os.execvp("sh", ["sh", "-c", {f"{sleep} & {sleep} & wait"!r}])""")
    look = scene.until(Observer(two.pid), lambda look: kinds(look)[1:] == ["sleep", "sleep"])
    with pytest.raises(UsageError, match="2 Python programs run below") as told:
        resolve(two.pid)
    assert f"pid {look.processes[2].pid}: " in told.value.cause


def test_ranks_that_a_shell_script_started_are_one_run(scene: Scene) -> None:
    sleep = f"{sys.executable} -c 'import time; time.sleep(600)'"
    line = f"export WORLD_SIZE=2; RANK=0 {sleep} & RANK=1 {sleep} & wait"
    shell = scene.start(f"""import os; os.execvp("sh", ["sh", "-c", {line!r}])""")
    look = scene.until(Observer(shell.pid), lambda look: kinds(look)[1:] == ["sleep", "sleep"])
    assert resolve(shell.pid).root == shell.pid
    assert [seen.role for seen in look.processes] == ["launcher", "rank", "rank"]


def test_supervisor_leads_to_what_it_runs(scene: Scene) -> None:
    (scene.folder / "train.py").write_text("import time; print('ready', flush=True); time.sleep(600)")
    process = started(
        scene,
        "import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'unstuck', 'run', 'train.py'])",
        cwd=scene.folder,
        env={**os.environ, "TMPDIR": str(scene.folder)},
    )
    assert first_line(process) == "ready"
    target = resolve(process.pid)
    assert proc.command(target.root)[-1].endswith("train.py")
    assert "is unstuck itself" in target.note
    assert os.path.isdir(target.flight_dir)
    assert resolve(target.root).note == "", "the supervisor is no part of the run"


def test_number_of_a_thread(scene: Scene) -> None:
    process = started(
        scene,
        """
        import threading, time
        def work():
            print(threading.get_native_id(), flush=True)
            time.sleep(600)
        threading.Thread(target=work).start()
        """,
    )
    thread = int(first_line(process))
    target = resolve(thread)
    assert (target.root, target.note) == (process.pid, f"{thread} is a thread of process {process.pid}")


@needs_namespace
def test_process_inside_a_container(scene: Scene) -> None:
    script = scene.folder / "train.py"
    script.write_text("import time; time.sleep(600)")
    outer = scene.start(f"import os; os.execvp('unshare', {[*OWN_PIDS, sys.executable, str(script)]!r})")
    look = scene.until(Observer(outer.pid), lambda look: kinds(look)[-1] == "sleep" and len(look.processes) == 2)
    inner = look.processes[1].pid
    said = ask(inner, *QUICK)
    assert said.code == 0, said
    assert "sleeping (train.py:1)" in said.flat
    assert unharmed(inner)


@needs_namespace
def test_number_that_is_valid_only_inside_a_container(scene: Scene) -> None:
    high = int(Path("/proc/sys/kernel/pid_max").read_text()) - 3
    if os.path.exists(f"/proc/{high}"):
        pytest.skip("the number is taken")
    inside = f"echo {high - 1} > /proc/sys/kernel/ns_last_pid; {sys.executable} -c 'import time; time.sleep(600)'; true"
    outer = scene.start(f"import os; os.execvp('unshare', {[*OWN_PIDS, 'sh', '-c', inside]!r})")
    look = scene.until(Observer(outer.pid), lambda look: len(look.processes) == 3 and kinds(look)[-1] == "sleep")
    innermost = look.processes[2].pid
    if not proc.maybe(f"/proc/{innermost}/status").count(f"\t{high}\n"):
        pytest.skip("a namespace may not choose its numbers here")
    with pytest.raises(UsageError, match=f"there is no process {high} here") as told:
        resolve(high)
    assert told.value.next_command == f"unstuck attach {innermost}"


# --- what may be seen ----------------------------------------------------------------------------------------


def test_root_or_owner_sees_the_stacks(scene: Scene) -> None:
    process = started(scene, SLEEPER)
    first_line(process)
    said = ask(process.pid, *QUICK)
    assert said.code == 0, said
    assert "sleeping (script0.py:4)" in said.flat
    assert "What could not be seen" not in said.out


@needs_nobody
def test_owner_who_is_not_root_sees_the_stacks(scene: Scene) -> None:
    process = as_nobody(scene, "import time; print('ready', flush=True); time.sleep(600)")
    assert first_line(process) == "ready"
    said = ask(process.pid, *QUICK, prefix=NOBODY)
    assert said.code == 0, said
    assert "sleeping" in said.flat
    assert "cannot be seen" not in said.out
    assert ask(process.pid, *QUICK).code == 0, "and so does root"


@needs_nobody
def test_another_user_is_told_whose_it_is_and_the_one_command(scene: Scene) -> None:
    process = started(scene, SLEEPER)
    first_line(process)
    said = ask(process.pid, *QUICK, prefix=NOBODY)
    assert said.code == 0, said
    assert "Its Python stacks cannot be seen from here." in said.out
    assert f"process {process.pid} belongs to root" in said.flat
    assert "waiting, as far as the kernel tells" in said.flat
    assert f"py-spy may not look into process {process.pid}" in said.flat
    assert said.flat.count("sudo") == 1
    assert said.flat.endswith(f"attach {process.pid}")
    plain = ask(process.pid, *QUICK, "--json", prefix=NOBODY).plain
    assert (plain["attach"]["state"], plain["findings"]) == ("blind", [])
    assert unharmed(process.pid)


@needs_setpriv
def test_root_without_ptrace_is_told_what_it_lacks(scene: Scene) -> None:
    process = started(scene, SLEEPER)
    first_line(process)
    said = ask(process.pid, *QUICK, prefix=NO_PTRACE)
    assert said.code == 0, said
    assert "Its Python stacks cannot be seen from here." in said.out
    assert "SYS_PTRACE" in said.flat
    assert "next: " in said.out
    assert unharmed(process.pid)


@needs_nobody
def test_process_that_hides_from_its_owner(scene: Scene) -> None:
    hides = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"
    process = as_nobody(scene, f"{hides}; print('ready', flush=True); time.sleep(600)")
    assert first_line(process) == "ready"
    said = ask(process.pid, *QUICK, prefix=NOBODY)
    assert said.code == 0, said
    assert "Its Python stacks cannot be seen from here." in said.out
    assert "next: " in said.out
    assert unharmed(process.pid)


@needs_nobody
@pytest.mark.slow
@pytest.mark.parametrize("prefix", [NOBODY, NO_PTRACE], ids=["another user", "no ptrace"])
def test_file_lock_is_named_by_the_kernel_alone(scene: Scene, prefix: tuple[str, ...]) -> None:
    holder = started(scene, LOCKED, "first", cwd=scene.folder)
    first_line(holder)
    waiter = started(scene, LOCKED, cwd=scene.folder)
    first_line(waiter)
    said = ask(waiter.pid, prefix=prefix)
    assert said.code == 1, said
    assert "file-lock-held" in said.out
    assert f"(pid {holder.pid}) holds" in said.flat
    assert f"inode {(scene.folder / 'run.lock').stat().st_ino} of device" in said.flat
    assert "permission denied" in said.flat
    assert unharmed(waiter.pid)
    assert unharmed(holder.pid)


def test_lock_is_found_where_only_the_call_is_hidden(scene: Scene) -> None:
    """As with Yama: descriptors may be read, system calls and memory may not."""
    holder = started(scene, LOCKED, "first", cwd=scene.folder)
    first_line(holder)
    waiter = started(scene, LOCKED, cwd=scene.folder)
    scene.until(Observer(waiter.pid), lambda look: kinds(look) == ["file-lock"])
    members = Tree(waiter.pid).members(proc.Trouble())
    waits = Waits(members, Descriptors([waiter.pid]), Sockets())
    reading = ThreadReading(waiter.pid, "python", "S", 0.1, 1, "locks_lock_inode_wait", None)
    wait = waits.explain(waiter.pid, reading)
    assert wait is not None
    assert (wait.kind, wait.target, wait.others) == ("file-lock", str(scene.folder / "run.lock"), (holder.pid,))


# --- the list ------------------------------------------------------------------------------------------------

FAKE = """\
import mmap, os, sys, time
library = os.open(sys.argv[1], os.O_RDONLY)
kept = mmap.mmap(library, 0, prot=mmap.PROT_READ)
os.fork()
time.sleep(600)
"""
"""It looks as if it had torch loaded, for a list reads no more than the names of what is mapped."""


def listing(folder: Path, trainings: int, *words: str, user: str = "") -> str:
    """A shell line: so many trainings, a moment, and `unstuck attach` among nothing else."""
    (folder / "train.py").write_text(FAKE)
    (folder / "libtorch_cpu.so").write_bytes(b"\0" * 4096)
    start = f"{sys.executable} {folder}/train.py {folder}/libtorch_cpu.so --lr 0.1 & "
    return f"{start * trainings} sleep 1.5; {user} {sys.executable} -m unstuck attach {' '.join(words)}"


def inside(line: str) -> subprocess.CompletedProcess[str]:
    """Run where there are no other processes; all end with the line."""
    return subprocess.run([*OWN_PIDS, "sh", "-c", line], capture_output=True, text=True, timeout=90)


@needs_namespace
def test_list_of_several(tmp_path: Path) -> None:
    told = inside(listing(tmp_path, 2))
    assert told.returncode == 0, told
    assert "2 trainings can be looked at here" in told.stdout
    rows = [line.split() for line in told.stdout.splitlines() if "train.py" in line and "%" in line]
    assert len(rows) == 2
    assert [row[4] for row in rows] == ["2", "2"], "processes of each tree"
    assert [row[5] for row in rows] == ["train.py", "train.py"]
    assert told.stdout.count("sleeping (train.py:5") == 2
    assert f"next: unstuck attach {rows[0][0]}" in told.stdout


@needs_namespace
def test_list_in_json(tmp_path: Path) -> None:
    import json

    told = inside(listing(tmp_path, 3, "--json"))
    assert told.returncode == 0, told
    plain = json.loads(told.stdout)
    assert plain["hidden"] == 0
    assert [one["processes"] for one in plain["candidates"]] == [2, 2, 2]
    assert set(plain["candidates"][0]) == {"pid", "age", "cpu", "processes", "doing", "command", "user"}
    assert plain["candidates"][0]["age"] >= plain["candidates"][2]["age"] > 0


@needs_namespace
def test_only_one_is_taken(tmp_path: Path) -> None:
    told = inside(listing(tmp_path, 1, "--seconds", "0.3"))
    assert told.returncode == 0, told
    assert "── unstuck · train.py · pid" in told.stdout or "unstuck - train.py - pid" in told.stdout


@needs_namespace
def test_none_is_an_error(tmp_path: Path) -> None:
    told = inside(listing(tmp_path, 0))
    assert told.returncode == 2, told
    assert "no training is running here" in told.stderr
    assert "Traceback" not in told.stderr


@needs_namespace
@needs_nobody
def test_trainings_of_other_users_are_counted(tmp_path: Path) -> None:
    told = inside(listing(tmp_path, 1, user=" ".join(NOBODY)))
    assert told.returncode == 2, told
    assert "2 of other users are hidden" in told.stderr
    assert "next: sudo" in told.stderr
