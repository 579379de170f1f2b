"""The ladder of stacks, members that come and go, and looking as an ordinary user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import unstuck
from tests.integration.observe_scene import Scene, kinds, main_thread, scene, wait_of
from unstuck.model import Flight
from unstuck.observer import proc
from unstuck.observer.look import Observer
from unstuck.observer.signal_stacks import SIGNAL, SignalStacks
from unstuck.observer.stacks import Ladder, PySpy
from unstuck.observer.tree import children_by_parent, descendants

__all__ = ["scene"]

ARMED = """
    import faulthandler, signal, sys, threading, time, os
    started = open(f"/proc/{os.getpid()}/stat").read().rpartition(")")[2].split()[19]
    dump = open(f"{sys.argv[1]}/{os.getpid()}-{started}.stacks", "ab")
    faulthandler.register(signal.SIGRTMIN + 5, file=dump, all_threads=True)
    class Keeper:
        def keep(self):
            time.sleep(600)
    threading.Thread(target=Keeper().keep, name="keeper", daemon=True).start()
    time.sleep(600)
"""


def test_faulthandler_answers_where_py_spy_is_absent(scene: Scene) -> None:
    process = scene.start(ARMED, str(scene.folder))
    absent = PySpy(str(scene.folder / "no-such-py-spy"))
    observer = Observer(process.pid, stacks=Ladder(absent, SignalStacks(scene.folder)))
    look = scene.until(observer, lambda look: not look.stacks or look.processes[0].stacks_by)
    seen = look.processes[0]
    assert (seen.stacks_by, seen.stacks_missing) == ("faulthandler", "py-spy: No such file or directory")
    main, keeper = seen.threads
    assert (main.frames[0].code, main.frames[0].user) == ("time.sleep(600)", True)
    assert keeper.frames[0].function == "Keeper.keep", "the class is in the source, not in the dump"
    again = observer.look()
    assert again.processes[0].stacks_by == "faulthandler", "a second dump is appended to the first"
    assert len(again.processes[0].threads) == 2


def test_signal_is_never_sent_to_a_process_without_the_handler(scene: Scene) -> None:
    process = scene.start("import time; time.sleep(600)")
    observer = Observer(process.pid, stacks=SignalStacks(scene.folder))
    scene.until(observer, lambda look: kinds(look) == ["sleep"])
    stat = proc.stat(process.pid)
    assert stat is not None
    (scene.folder / f"{process.pid}-{stat.started}.stacks").touch()
    seen = observer.look().processes[0]
    assert (seen.stacks_by, seen.stacks_missing) == ("", "faulthandler: no handler in the process")
    assert process.poll() is None
    assert SIGNAL > 34


def test_py_spy_that_hangs_is_ended_at_the_limit_with_all_it_started(scene: Scene) -> None:
    fake = scene.folder / "py-spy"
    fake.write_text("#!/bin/sh\nsleep 613 &\nsleep 613\n")
    fake.chmod(0o755)
    process = scene.start("import time; time.sleep(600)")
    observer = Observer(process.pid, stacks=PySpy(str(fake), limit=0.3))
    begun = time.monotonic()
    look = observer.look()
    assert time.monotonic() - begun < 2
    assert look.processes[0].stacks_missing == "py-spy: no answer within 0.3 s"
    assert look.trouble
    deadline = time.monotonic() + 5
    while left := [pid for pid in proc.numbers("/proc") if proc.command(pid) == ("sleep", "613")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def test_py_spy_that_says_no(scene: Scene) -> None:
    fake = scene.folder / "py-spy"
    fake.write_text("#!/bin/sh\necho 'Permission Denied: Try running again with sudo' >&2\nexit 1\n")
    fake.chmod(0o755)
    process = scene.start("import time; time.sleep(600)")
    look = Observer(process.pid, stacks=PySpy(str(fake))).look()
    assert look.processes[0].stacks_missing == "py-spy: Permission denied: ptrace is not allowed here"
    assert any("ptrace_scope" in line for line in look.trouble)


def test_only_some_are_looked_into(scene: Scene) -> None:
    process = scene.start("""
        import os, time
        os.fork()
        time.sleep(600)
    """)
    observer = Observer(process.pid)
    look = scene.until(observer, lambda look: kinds(look) == ["sleep", "sleep"])
    child = look.processes[1].pid
    look = observer.look(only={child})
    assert [bool(main_thread(seen).frames) for seen in look.processes] == [False, True]
    assert observer.look(stacks=False).stacks is False


def test_members_that_die_while_looked_at_hide_nobody(scene: Scene) -> None:
    process = scene.start("""
        import os, signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            if os.fork() == 0:
                os._exit(0)
    """)
    observer = Observer(process.pid)
    for _ in range(60):
        look = observer.look(stacks=False)
        assert look.processes[0].pid == process.pid
        assert look.processes[0].threads
    assert observer.look().processes[0].stacks_by == "py-spy"


def test_root_that_is_gone_is_trouble_not_a_fault(scene: Scene) -> None:
    process = scene.start("pass")
    process.wait()
    look = Observer(process.pid).look()
    assert look.processes == ()
    assert look.trouble == (f"process {process.pid} is gone",)


def test_zombie_keeps_its_command(scene: Scene) -> None:
    process = scene.start("""
        import os, time
        if os.fork() == 0:
            time.sleep(0.5)
            os._exit(0)
        time.sleep(600)
    """)
    observer = Observer(process.pid)
    scene.until(observer, lambda look: kinds(look) == ["sleep", "sleep"])
    look = scene.until(observer, lambda look: look.processes[1].threads[0].state == "Z")
    assert look.processes[1].command == look.processes[0].command
    assert look.processes[1].threads[0].wait is None


def test_what_a_process_wrote_of_itself_is_believed(scene: Scene) -> None:
    process = scene.start("import time; time.sleep(600)")
    observer = Observer(process.pid)
    look = scene.until(observer, lambda look: kinds(look) == ["sleep"])
    began = look.processes[0].began
    assert abs(look.at - began) < 15
    flight = Flight(process.pid, began=began, role="worker", worker=3, rank=1)
    seen = observer.look(stacks=False, flights={process.pid: flight}).processes[0]
    assert (seen.recorded, seen.role, seen.worker, seen.rank) == (True, "worker", 3, 1)
    another = Flight(process.pid, began=began - 100, role="worker")
    assert observer.look(stacks=False, flights={process.pid: another}).processes[0].recorded is False


def test_orphan_never_seen_before_is_found_by_its_flight(scene: Scene) -> None:
    process = scene.start(
        """
        import os, sys, time
        if os.fork() == 0:
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                time.sleep(600)
            os._exit(0)
        os.wait()
        time.sleep(600)
    """,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    orphan = int(process.stdout.readline())
    stat = proc.stat(orphan)
    assert stat is not None
    scene.until(Observer(process.pid), lambda look: kinds(look)[0] == "sleep")  # the one between is dead and gone
    flights = {orphan: Flight(orphan, began=stat.started / proc.TICKS)}
    look = Observer(process.pid).look(flights=flights)
    assert [seen.pid for seen in look.processes] == [process.pid, orphan]


def test_counters_and_roles(scene: Scene) -> None:
    process = scene.start(
        """
        import multiprocessing, subprocess, time
        from multiprocessing import resource_tracker
        resource_tracker.ensure_running()
        subprocess.Popen(["sleep", "600"])
        held = [open("/dev/null") for _ in range(10)]
        time.sleep(600)
        """,
        env={**os.environ, "RANK": "2", "WORLD_SIZE": "4"},
    )
    look = scene.until(Observer(process.pid), lambda look: kinds(look)[0] == "sleep" and len(look.processes) == 3)
    roles = {seen.command[-1]: seen.role for seen in look.processes}
    assert sorted(roles.values()) == ["helper", "helper", "rank"]
    root = look.processes[0]
    assert (root.rank, root.is_python, root.device) == (2, True, False)
    assert root.open_files is not None
    assert root.open_files > 10
    assert root.open_files_limit is not None
    assert root.open_files_limit >= root.open_files
    assert root.rss > 1_000_000
    assert root.io_bytes > 0


def test_tree_is_the_same_on_kernels_without_lists_of_children(scene: Scene) -> None:
    process = scene.start("""
        import os, threading, time
        threading.Thread(target=os.fork).start()
        time.sleep(600)
    """)
    look = scene.until(Observer(process.pid), lambda look: len(look.processes) == 2)
    child = look.processes[1].pid
    assert descendants(process.pid) == [child], "started by a thread that is gone"
    assert children_by_parent(process.pid) == [child]


def test_shell_that_starts_python_is_a_launcher(scene: Scene) -> None:
    process = scene.start(f"""
        import os
        os.execvp("sh", ["sh", "-c", "{sys.executable} -c 'import time; time.sleep(600)'; true"])
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "sleep"])
    assert [seen.role for seen in look.processes] == ["launcher", "main"]


def test_dataloader_worker_shows_itself_by_its_stack(scene: Scene) -> None:
    pytest.importorskip("torch")
    process = scene.start("""
        import time
        import torch
        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, index):
                time.sleep(600)
        for batch in torch.utils.data.DataLoader(Slow(), num_workers=1):
            pass
    """)
    observer = Observer(process.pid)
    look = scene.until(observer, lambda look: kinds(look) == ["pipe-read", "sleep"])
    main, worker = look.processes
    assert (main.role, worker.role, worker.forked) == ("main", "worker", True)
    assert [frame.function for frame in main_thread(worker).frames if frame.user] == ["Slow.__getitem__"]
    assert worker.pid in wait_of(main).others
    assert observer.look(stacks=False).processes[1].role == "worker", "known from the look before"


def test_path_that_is_missing_and_a_lock_file(scene: Scene) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    (scene.folder / "run.lock").write_text(f"host 7\npid: {gone.pid}\n")
    process = scene.start("import time; f = open('run.lock'); time.sleep(600)", cwd=scene.folder)
    observer = Observer(process.pid)
    scene.until(observer, lambda look: kinds(look) == ["sleep"])
    fact = observer.path_fact("run.lock")
    assert (fact.exists, fact.error, fact.users) == (True, "", (process.pid,))
    assert (fact.text_pid, fact.pid_alive) == (gone.pid, False)
    assert fact.age is not None
    assert fact.age < 60
    missing = observer.path_fact("/no/such/file")
    assert (missing.exists, missing.error) == (False, "No such file or directory")
    os.mkfifo(scene.folder / "fifo")
    assert observer.path_fact(str(scene.folder / "fifo")).exists is True


def test_lock_file_that_a_loop_keeps_testing_for(scene: Scene) -> None:
    (scene.folder / "stale.lock").touch()
    process = scene.start(
        """
        import os, time
        CONSTANT = "stale.lock"
        def wait(path):
            while os.path.exists(path):
                time.sleep(600)
        def wait_again():
            while os.path.exists(CONSTANT):
                time.sleep(600)
        if os.fork() == 0:
            wait_again()
        wait("stale" + ".lock")
        """,
        cwd=scene.folder,
    )
    observer = Observer(process.pid)
    look = scene.until(observer, lambda look: kinds(look) == ["sleep", "sleep"])
    assert [main_thread(seen).frames[0].polls for seen in look.processes] == ["path", "CONSTANT"]
    facts = observer.paths_of(look, "polls")
    assert [(fact.path, fact.expression) for fact in facts] == [
        (str(scene.folder / "stale.lock"), "path"),
        (str(scene.folder / "stale.lock"), "CONSTANT"),
    ]


LOOK = """
import json, sys
from unstuck.observer.look import Observer
look = Observer(int(sys.argv[1])).look()
seen = look.processes[0]
thread = seen.threads[0]
print(json.dumps([thread.wait.kind, seen.stacks_by, seen.stacks_missing, len(thread.frames), look.trouble]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_ordinary_user_sees_their_own_and_is_told_about_others(scene: Scene) -> None:
    nobody: dict[str, Any] = {
        "user": 65534,
        "group": 65534,
        "extra_groups": [],
        "env": {
            "PYTHONPATH": str(Path(unstuck.__file__).parent.parent),
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        },
    }
    python = next((path for path in (sys.executable, "/usr/bin/python3") if _runs(path, nobody)), None)
    if python is None:
        pytest.skip("no interpreter that everybody may use")
    sleep = [python, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleep, **nobody) as mine, subprocess.Popen(sleep) as others:
        try:
            for process in (mine, others):
                scene.until(Observer(process.pid), lambda look: kinds(look) == ["sleep"])
            command = [python, "-c", LOOK]
            own = subprocess.run([*command, str(mine.pid)], capture_output=True, text=True, check=True, **nobody)
            foreign = subprocess.run([*command, str(others.pid)], capture_output=True, text=True, check=True, **nobody)
        finally:
            mine.kill()
            others.kill()
    assert json.loads(own.stdout) == ["sleep", "py-spy", "", 1, []]
    kind, by, missing, frames, trouble = json.loads(foreign.stdout)
    assert (by, frames) == ("", 0)
    assert missing.startswith("py-spy: Permission denied: ptrace is not allowed here; faulthandler: ")
    assert kind in ("sleep", "unknown")
    assert len(trouble) == 2


def _runs(python: str, options: dict[str, Any]) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", "import unstuck.observer.look"], capture_output=True, check=False, **options
        )
    except OSError:
        return False
    return done.returncode == 0
