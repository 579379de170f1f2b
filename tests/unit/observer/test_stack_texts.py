"""Parsers of py-spy's JSON and faulthandler's text, and the matching of threads."""

from __future__ import annotations

import json

from unstuck.model import Frame
from unstuck.observer.signal_stacks import parse_dumps, parse_faulthandler
from unstuck.observer.stacks import PythonThread, local_in, own_frames, parse_py_spy, reason_in
from unstuck.observer.syscalls import Call
from unstuck.observer.threads import ThreadReading, match_threads

TWO_DUMPS = """\
Thread 0x00007ff1a03c16c0 (most recent call first):
  File "/home/me/train.py", line 6 in inner
  File "/usr/lib/python3.10/threading.py", line 973 in _bootstrap

Current thread 0x00007ff1a0dcbb80 (most recent call first):
  File "/home/me/train.py", line 10 in main
  File "/home/me/train.py", line 11 in <module>
Thread 0x00007ff1a03c16c0 (most recent call first):
  File "/home/me/train.py", line 7 in inner
  File "/usr/lib/python3.10/threading.py", line 973 in _bootstrap

Current thread 0x00007ff1a0dcbb80 (most recent call first):
  File "/home/me/train.py", line 12 in main
  File "/home/me/train.py", line 11 in <module>
"""

CRASH = """\
Fatal Python error: Segmentation fault

Thread 0x00007f04160a56c0 [Thread-1 (keep)] (most recent call first):
  File "/home/me/a "quoted" name.py", line 6 in keep

Current thread 0x00007f0416ce7b80 [python] (most recent call first):
  Garbage-collecting
  File "/home/me/train.py", line 10 in main
  File "/home/me/train.py", line ??? in <module>

Current thread's C stack trace (most recent call first):
  Binary file "/usr/lib/libc.so.6", at gsignal+0x1c [0x7f]
  <truncated rest of calls>

Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)
"""


def test_last_of_several_dumps_the_main_thread_first() -> None:
    assert len(parse_dumps(TWO_DUMPS)) == 2
    main, other = parse_faulthandler(TWO_DUMPS)
    assert main.tid == 0x00007FF1A0DCBB80
    assert [(frame.function, frame.line) for frame in main.frames] == [("main", 12), ("<module>", 11)]
    assert other.frames[0] == Frame("/home/me/train.py", 7, "inner")


def test_crash_with_names_and_a_native_stack() -> None:
    (dump,) = parse_dumps(CRASH)
    main, keeper = dump
    assert (main.name, keeper.name) == ("python", "Thread-1 (keep)")
    assert [(frame.function, frame.line) for frame in main.frames] == [("main", 10), ("<module>", 0)]
    assert keeper.frames[0].file == '/home/me/a "quoted" name.py'


def test_dumps_that_say_little() -> None:
    (alone,) = parse_faulthandler('Stack (most recent call first):\n  File "x.py", line 1 in f\n  ...\n')
    assert alone.frames == (Frame("x.py", 1, "f"),)
    (bare,) = parse_faulthandler("Thread 0x01 (most recent call first):\n  <no Python frame>\n")
    assert bare.frames == ()
    assert parse_faulthandler("") == ()
    (cut,) = parse_faulthandler('Current thread 0x01 (most recent call first):\n  File "x.py", li')
    assert cut.frames == (Frame("x.py", 0, ""),)


def test_timeout_begins_a_dump() -> None:
    text = 'Timeout (0:00:01)!\nThread 0x01 (most recent call first):\n  File "x.py", line 1 in f\n'
    assert len(parse_dumps(text + "\n" + text)) == 2


def test_py_spy_frames_native_ones_apart() -> None:
    frames = [
        {"name": "gomp_barrier_wait", "filename": "libgomp.so.1", "module": "/usr/lib/libgomp.so.1", "line": 0},
        {"name": "Net.forward", "filename": "/home/me/net.py", "module": None, "line": 4},
    ]
    entry = {"pid": 1, "thread_id": 139750427477696, "thread_name": None, "os_thread_id": 3523, "frames": frames}
    (thread,) = parse_py_spy(json.dumps([entry]))
    assert (thread.tid, thread.name, thread.native) == (3523, "", ("gomp_barrier_wait",))
    assert thread.frames == (Frame("/home/me/net.py", 4, "Net.forward"),)


def test_one_local_of_one_frame() -> None:
    frame = {"name": "f", "filename": "x.py", "line": 4, "locals": [{"name": "path", "repr": '"/tmp/lock"'}]}
    dump = json.dumps([{"frames": [frame]}])
    assert local_in(dump, Frame("x.py", 4, "f"), "path") == "/tmp/lock"
    assert local_in(dump, Frame("x.py", 4, "f"), "other") is None
    assert local_in(dump, Frame("x.py", 5, "f"), "path") is None


def test_why_py_spy_gave_up() -> None:
    denied = "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'"
    assert reason_in(denied) == "Permission denied: ptrace is not allowed here"
    assert reason_in("Error: Failed to find python version\n\nCaused by:\n 0: x") == "Failed to find python version"
    assert reason_in("") == "failed silently"


def test_frames_of_the_parent_are_cut_off() -> None:
    frames = (
        Frame("/home/me/data.py", 3, "Shard.__getitem__"),
        Frame("/usr/lib/python3.11/multiprocessing/popen_fork.py", 71, "Popen._launch"),
        Frame("/home/me/train.py", 40, "<module>"),
    )
    assert own_frames(frames) == frames[:2]
    assert own_frames(frames[:1]) == frames[:1]


def reading(tid: int, stack: int = 0) -> ThreadReading:
    return ThreadReading(tid, "python", "S", 0.0, 0, "", Call("futex", stack=stack))


def test_threads_known_by_number() -> None:
    threads = (PythonThread(2, (), tid=12), PythonThread(1, (), tid=10))
    assert match_threads(10, [reading(10), reading(11), reading(12)], threads) == {12: threads[0], 10: threads[1]}


def test_threads_known_by_their_stack_only() -> None:
    """Newest first; a native thread without Python frames lies between them and takes nobody's place."""
    newest, older, main = PythonThread(0x7003_FFFF, ()), PythonThread(0x7001_FFFF, ()), PythonThread(0x7009_0000, ())
    readings = [reading(10, 0x7FFF_0000), reading(11, 0x7001_F000), reading(12, 0x7002_F000), reading(13, 0x7003_F000)]
    assert match_threads(10, readings, (newest, older, main)) == {10: main, 11: older, 13: newest}


def test_stale_number_of_a_forked_child_is_not_believed() -> None:
    thread = PythonThread(1, (), tid=9)
    assert match_threads(10, [reading(10)], (thread,)) == {10: thread}
