"""Locks seen from outside: threads, processes, files; who waits, who holds, and what the semaphore says."""

from __future__ import annotations

from tests.integration.observe_scene import Scene, kinds, main_thread, scene, wait_of
from unstuck.model import Look
from unstuck.observer.look import Observer

__all__ = ["scene"]


def test_threading_lock_held_by_another_thread(scene: Scene) -> None:
    process = scene.start("""
        import threading, time
        lock = threading.Lock()
        def keep():
            with lock:
                time.sleep(600)
        threading.Thread(target=keep, name="keeper", daemon=True).start()
        time.sleep(0.2)
        with lock:
            pass
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["lock"])
    main, keeper = look.processes[0].threads
    assert main.wait is not None
    assert keeper.wait is not None
    assert (main.wait.syscall, main.wait.timed, main.wait.value) == ("futex", False, 0)
    assert (main.frames[0].takes, main.frames[0].user, main.frames[0].code) == ("lock", True, "with lock:")
    assert (keeper.name, keeper.wait.kind, keeper.wait.timed) == ("keeper", "sleep", True)
    assert (keeper.frames[0].holds, keeper.frames[0].function) == (("lock",), "keep")
    assert look.processes[0].stacks_by == "py-spy"
    assert look.processes[0].role == "main"


def test_lock_lost_in_fork(scene: Scene) -> None:
    process = scene.start("""
        import os, threading, time
        lock = threading.Lock()
        def keep():
            with lock:
                time.sleep(600)
        threading.Thread(target=keep, daemon=True).start()
        time.sleep(0.2)
        if os.fork() == 0:
            lock.acquire()
        os.wait()
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "lock"])
    parent, child = look.processes
    assert (parent.forked, child.forked) == (False, True)
    assert wait_of(parent).others == (child.pid,)
    assert len(child.threads) == 1
    assert (wait_of(child).value, wait_of(child).parent_value) == (0, 0)
    assert main_thread(child).frames[0].takes == "lock"


def test_parent_value_tells_a_lock_released_since_the_fork(scene: Scene) -> None:
    process = scene.start("""
        import os, threading
        lock = threading.Lock()
        lock.acquire()
        if os.fork() == 0:
            lock.acquire()
        lock.release()
        os.wait()
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "lock"])
    assert (wait_of(look.processes[1]).value, wait_of(look.processes[1]).parent_value) == (0, 1)


def test_multiprocessing_lock_held_by_another_process(scene: Scene) -> None:
    process = scene.start("""
        import multiprocessing, time
        context = multiprocessing.get_context("fork")
        lock = context.Lock()
        def keep(lock):
            with lock:
                time.sleep(600)
        def want(lock):
            time.sleep(0.3)
            lock.acquire()
        children = [context.Process(target=keep, args=(lock,)), context.Process(target=want, args=(lock,))]
        for child in children: child.start()
        for child in children: child.join()
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "sleep", "shared-lock"])
    main, keeper, wanter = look.processes
    wait = wait_of(wanter)
    assert set(wait.others) == {main.pid, keeper.pid}
    assert wait.value == 0
    assert wait.target.startswith("/dev/shm/sem.")
    assert "lock" in main_thread(keeper).frames[0].holds
    assert wait_of(main).others == (keeper.pid,)
    assert all(frame.function != "<module>" for frame in main_thread(wanter).frames), "the parent's frames are cut off"


def test_queue_get_with_nobody_to_put(scene: Scene) -> None:
    process = scene.start("""
        import queue
        queue.Queue().get()
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["lock"])
    assert wait_of(look.processes[0]).timed is False
    assert [frame.user for frame in main_thread(look.processes[0]).frames][-1] is True
    assert "Queue.get" in [frame.function for frame in main_thread(look.processes[0]).frames]


def test_wait_with_a_time_limit_is_timed(scene: Scene) -> None:
    process = scene.start("""
        import threading
        threading.Event().wait(600)
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["lock"])
    assert wait_of(look.processes[0]).timed is True


def test_flock_held_by_the_parent(scene: Scene) -> None:
    path = scene.folder / "data.lock"
    process = scene.start(
        """
        import fcntl, os, sys
        held = open(sys.argv[1], "w")
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fork() == 0:
            again = open(sys.argv[1], "w")
            fcntl.flock(again, fcntl.LOCK_EX)
        os.wait()
        """,
        str(path),
    )
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "file-lock"])
    parent, child = look.processes
    wait = wait_of(child)
    assert (wait.syscall, wait.target, wait.others, wait.also_self) == ("flock", str(path), (parent.pid,), True)
    (lock,) = look.locks
    assert (lock.path, lock.kind, lock.mode) == (str(path), "FLOCK", "WRITE")
    assert (lock.holder, lock.holder_alive, lock.waiters) == (parent.pid, True, (child.pid,))
    assert lock.holder_command.endswith(f"script0.py {path}")


def test_posix_lock_held_by_a_sibling(scene: Scene) -> None:
    path = scene.folder / "data.lock"
    process = scene.start(
        """
        import fcntl, os, sys, time
        for delay in (0, 0.3):
            if os.fork() == 0:
                time.sleep(delay)
                file = open(sys.argv[1], "w")
                fcntl.lockf(file, fcntl.LOCK_EX)
                time.sleep(600)
        os.wait()
        """,
        str(path),
    )
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "sleep", "file-lock"])
    _, holder, waiter = look.processes
    assert (wait_of(waiter).syscall, wait_of(waiter).others) == ("fcntl", (holder.pid,))
    (lock,) = look.locks
    assert (lock.kind, lock.holder, lock.waiters) == ("POSIX", holder.pid, (waiter.pid,))


def test_open_file_description_lock_has_no_pid_and_is_found_all_the_same(scene: Scene) -> None:
    path = scene.folder / "data.lock"
    process = scene.start(
        """
        import fcntl, os, struct, sys, time
        OFD_SETLKW = 38
        for delay in (0, 0.3):
            if os.fork() == 0:
                time.sleep(delay)
                file = open(sys.argv[1], "w")
                fcntl.fcntl(file, OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
                time.sleep(600)
        os.wait()
        """,
        str(path),
    )
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "sleep", "file-lock"])
    _, holder, waiter = look.processes
    assert wait_of(waiter).others == (holder.pid,)
    assert [(lock.kind, lock.holder, lock.waiters) for lock in look.locks] == [("OFDLCK", holder.pid, (waiter.pid,))]


def test_flock_whose_taker_is_dead_is_held_by_the_child_that_inherited_it(scene: Scene) -> None:
    path = scene.folder / "data.lock"
    process = scene.start(
        """
        import fcntl, os, sys, time
        if os.fork() == 0:
            held = open(sys.argv[1], "w")
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.fork() == 0:
                time.sleep(600)
            time.sleep(1)
            os._exit(0)
        os.wait()
        again = open(sys.argv[1], "w")
        fcntl.flock(again, fcntl.LOCK_EX)
        """,
        str(path),
    )
    observer = Observer(process.pid)

    def stands(look: Look) -> bool:
        return wait_of(look.processes[0]).kind == "file-lock" and len(look.processes) == 2

    look = scene.until(observer, stands)
    waiter, orphan = look.processes
    assert orphan.ppid != waiter.pid, "its parent, who took the lock, is dead"
    assert wait_of(waiter).others == (orphan.pid,)
    assert [(lock.holder, lock.holder_alive) for lock in look.locks] == [(orphan.pid, True)]


def test_process_that_locks_the_same_file_twice_waits_for_itself(scene: Scene) -> None:
    path = scene.folder / "data.lock"
    process = scene.start(
        """
        import fcntl, sys
        one, two = open(sys.argv[1], "w"), open(sys.argv[1], "w")
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(two, fcntl.LOCK_EX)
        """,
        str(path),
    )
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["file-lock"])
    assert (wait_of(look.processes[0]).others, wait_of(look.processes[0]).also_self) == ((), True)
    assert [(lock.holder, lock.waiters) for lock in look.locks] == [(process.pid, (process.pid,))]
