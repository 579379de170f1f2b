"""Pipes, sockets, children, sleeps and loops seen from outside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

from tests.integration.observe_scene import Scene, kinds, main_thread, scene, wait_of
from unstuck.observer.look import Observer

__all__ = ["scene"]


def test_full_pipe_and_the_parent_that_waits_instead_of_reading(scene: Scene) -> None:
    process = scene.start("""
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "print('x' * 1_000_000)"], stdout=subprocess.PIPE)
        child.wait()
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "pipe-write"])
    parent, child = look.processes
    assert wait_of(parent).others == (child.pid,)
    assert (wait_of(child).fd, wait_of(child).others, wait_of(child).also_self) == (1, (parent.pid,), False)
    assert wait_of(child).target.startswith("pipe:[")
    assert child.forked is False


def test_two_that_both_write_first(scene: Scene) -> None:
    process = scene.start("""
        import os
        ours, theirs = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.write(ours[1], b"x" * 1_000_000)
        os.write(theirs[1], b"x" * 1_000_000)
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["pipe-write", "pipe-write"])
    parent, child = look.processes
    assert wait_of(parent).others == (child.pid,)
    assert wait_of(child).others == (parent.pid,)
    assert wait_of(parent).also_self is True, "it kept the read end open as well"


def test_join_of_a_child_whose_queue_is_not_drained(scene: Scene) -> None:
    process = scene.start("""
        import multiprocessing
        context = multiprocessing.get_context("fork")
        def fill(queue):
            queue.put("x" * 1_000_000)
        queue = context.Queue()
        child = context.Process(target=fill, args=(queue,))
        child.start()
        child.join()
    """)
    look = scene.until(
        Observer(process.pid),
        lambda look: (
            kinds(look) == ["child", "lock"]
            and [thread.wait.kind for thread in look.processes[1].threads if thread.wait] == ["lock", "pipe-write"]
        ),
    )
    parent, child = look.processes
    feeder = child.threads[1]
    assert wait_of(parent).others == (child.pid,)
    assert feeder.wait is not None
    assert feeder.wait.others == (parent.pid,)
    assert feeder.name == "QueueFeederThread"
    assert any(frame.function == "Queue._feed" for frame in feeder.frames)


def test_join_with_a_time_limit_polls_the_sentinel(scene: Scene) -> None:
    process = scene.start("""
        import multiprocessing, time
        context = multiprocessing.get_context("fork")
        child = context.Process(target=time.sleep, args=(600,))
        child.start()
        child.join(600)
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["child", "sleep"])
    assert wait_of(look.processes[0]).others == (look.processes[1].pid,)
    assert wait_of(look.processes[0]).timed is True
    assert "poll" in wait_of(look.processes[0]).syscall


def test_polled_connection_is_no_sentinel_though_one_child_alone_writes_to_it(scene: Scene) -> None:
    process = scene.start("""
        import multiprocessing, time
        context = multiprocessing.get_context("fork")
        reader, writer = context.Pipe(duplex=False)
        child = context.Process(target=time.sleep, args=(600,))
        child.start()
        writer.close()
        reader.poll(600)
    """)
    look = scene.until(Observer(process.pid), lambda look: wait_of(look.processes[0]).others)
    assert (wait_of(look.processes[0]).kind, wait_of(look.processes[0]).others) == (
        "pipe-read",
        (look.processes[1].pid,),
    )


def test_multiprocessing_queue_get(scene: Scene) -> None:
    process = scene.start("""
        import multiprocessing, time
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=time.sleep, args=(600,))
        child.start()
        queue.get()
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["pipe-read", "sleep"])
    assert (wait_of(look.processes[0]).others, wait_of(look.processes[0]).also_self) == (
        (look.processes[1].pid,),
        True,
    )


def test_duplex_pipe_is_a_pipe_with_a_known_peer(scene: Scene) -> None:
    process = scene.start("""
        import multiprocessing, time
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=time.sleep, args=(600,))
        child.start()
        there.close()
        here.recv()
    """)
    as_seen = (["socket", "sleep"], ["pipe-read", "sleep"])  # to the kernel it is a socket; the stack says more
    look = scene.until(Observer(process.pid), lambda look: kinds(look) in as_seen)
    assert kinds(look) == as_seen[1]
    assert wait_of(look.processes[0]).others == (look.processes[1].pid,)


def test_input_from_a_silent_pipe(scene: Scene) -> None:
    process = scene.start("name = input()", stdin=subprocess.PIPE)
    observer = Observer(process.pid)
    look = scene.until(observer, lambda look: kinds(look) == ["pipe-read"])
    wait = wait_of(look.processes[0])
    assert (wait.fd, wait.target, wait.timed) == (0, "stdin", False)
    assert main_thread(look.processes[0]).frames[0].code == "name = input()"
    assert observer.stdin() == "pipe"


def test_input_from_a_terminal(scene: Scene) -> None:
    ours, theirs = os.openpty()
    try:
        process = scene.start("name = input()", stdin=theirs)
        observer = Observer(process.pid)
        look = scene.until(observer, lambda look: kinds(look) == ["terminal-read"])
        assert (wait_of(look.processes[0]).fd, wait_of(look.processes[0]).target) == (0, "stdin")
        assert observer.stdin() == "terminal"
    finally:
        os.close(ours)
        os.close(theirs)


def test_reading_a_fifo(scene: Scene) -> None:
    path = scene.folder / "fifo"
    os.mkfifo(path)
    process = scene.start(
        """
        import os, sys, time
        if os.fork() == 0:
            writer = open(sys.argv[1], "wb")
            time.sleep(600)
        open(sys.argv[1], "rb").read()
        """,
        str(path),
    )
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["file", "sleep"])
    wait = wait_of(look.processes[0])
    assert (wait.syscall, wait.target, wait.others) == ("read", str(path), (look.processes[1].pid,))


def test_opening_a_fifo_nobody_writes_to(scene: Scene) -> None:
    path = scene.folder / "fifo"
    os.mkfifo(path)
    process = scene.start("import sys; open(sys.argv[1])", str(path))
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["file"])
    assert (wait_of(look.processes[0]).syscall, wait_of(look.processes[0]).target) == ("openat", str(path))


def test_recv_from_a_silent_peer_in_the_tree(scene: Scene) -> None:
    process = scene.start("""
        import os, socket, time
        server = socket.create_server(("127.0.0.1", 0))
        if os.fork() == 0:
            server.close()
            time.sleep(600)
        server.close()
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        if os.fork() == 0:
            accepted, _ = server.accept()
            time.sleep(600)
        server.close()
        socket.create_connection(("127.0.0.1", port)).recv(1)
    """)
    look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["socket", "sleep", "sleep"])
    wait = wait_of(look.processes[0])
    assert wait.target.startswith("tcp 127.0.0.1:")
    assert wait.others == (look.processes[2].pid,)


def test_recv_from_a_peer_outside_the_tree(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = scene.start(
            "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)", str(port)
        )
        look = scene.until(Observer(process.pid), lambda look: kinds(look) == ["socket"])
        wait = wait_of(look.processes[0])
        assert (wait.syscall, wait.target, wait.others) == ("recvfrom", f"tcp 127.0.0.1:{port}", ())


def test_sleep_and_busy_loop(scene: Scene) -> None:
    sleeper = scene.start("import time; time.sleep(600)")
    spinner = scene.start("""
        def spin():
            total = 0
            while True:
                total += 1
        spin()
    """)
    look = scene.until(Observer(sleeper.pid), lambda look: kinds(look) == ["sleep"])
    assert wait_of(look.processes[0]).timed is True
    observer = Observer(spinner.pid)
    scene.until(observer, lambda look: main_thread(look.processes[0]).cpu > 0.2)
    look = scene.until(observer, lambda look: kinds(look) == ["running"])
    innermost = main_thread(look.processes[0]).frames[0]
    assert (innermost.function, innermost.loop) == ("spin", (4, 5))


def test_still_thread_keeps_its_switch_count_while_looked_at(scene: Scene) -> None:
    process = scene.start("import time; time.sleep(600)")
    observer = Observer(process.pid)
    first = scene.until(observer, lambda look: kinds(look) == ["sleep"])
    second = observer.look()
    assert main_thread(first.processes[0]).switches == main_thread(second.processes[0]).switches > 0


def test_stopped(scene: Scene) -> None:
    process = scene.start("import time; time.sleep(600)")
    observer = Observer(process.pid)
    scene.until(observer, lambda look: kinds(look) == ["sleep"])
    os.kill(process.pid, signal.SIGSTOP)
    look = scene.until(observer, lambda look: kinds(look) == ["stopped"])
    assert main_thread(look.processes[0]).state == "T"
    assert main_thread(look.processes[0]).frames[0].code == "import time; time.sleep(600)"
    os.kill(process.pid, signal.SIGCONT)
    scene.until(observer, lambda look: kinds(look) == ["sleep"])


def test_restarted_wait_is_seen_for_what_it_is(scene: Scene) -> None:
    """After SIGCONT the kernel names a timed wait "restart_syscall"."""
    process = scene.start("import threading; threading.Event().wait(600)")
    observer = Observer(process.pid)
    scene.until(observer, lambda look: kinds(look) == ["lock"])
    os.kill(process.pid, signal.SIGSTOP)
    scene.until(observer, lambda look: kinds(look) == ["stopped"])
    os.kill(process.pid, signal.SIGCONT)
    look = scene.until(observer, lambda look: kinds(look) == ["lock"])
    assert wait_of(look.processes[0]).timed is True


def test_epoll_and_select_name_what_they_watch(scene: Scene) -> None:
    process = scene.start("""
        import os, select
        ours, theirs = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(ours[0]), os.close(theirs[1])
            poller = select.epoll()
            poller.register(theirs[0], select.EPOLLIN)
            poller.poll()
        os.close(ours[1]), os.close(theirs[0])
        select.select([ours[0]], [], [])
    """)
    look = scene.until(
        Observer(process.pid),
        lambda look: wait_of(look.processes[1]).syscall.startswith("epoll") and wait_of(look.processes[0]).others,
    )
    parent, child = look.processes
    assert (wait_of(parent).kind, wait_of(parent).timed) == ("pipe-read", False), "no frame of multiprocessing: a pipe"
    assert wait_of(parent).others == (child.pid,)
    assert (wait_of(child).kind, wait_of(child).others) == ("pipe-read", (parent.pid,))
