"""Parsers of what the kernel writes, on literal text."""

from __future__ import annotations

import struct

import pytest

from unstuck.observer.descriptors import access_in, is_device, is_terminal, parse_mounts
from unstuck.observer.locks import is_private, kind_waited_for, looks_like_semaphore, parse_locks, shared_mappings
from unstuck.observer.proc import parse_stat
from unstuck.observer.signal_stacks import catches
from unstuck.observer.sockets import parse_table
from unstuck.observer.syscalls import Call, Watched, epoll_targets, has_limit, name_of, parse_call, parse_pollfds
from unstuck.observer.threads import switches_in
from unstuck.observer.waits import by_channel


def test_stat_of_a_process_whose_name_has_brackets_and_blanks() -> None:
    stat = parse_stat(
        "77 (a ) (b) S 1 77 77 0 -1 4194304 1069 0 0 0 250 50 100 20 20 0 2 0 98361 88449024 2353 "
        "18446744073709551615 94835952308224 94835952308565 140734285304560 0 0 0 0 16781318 0 1 0 0 17 1 0 0 0"
    )
    assert (stat.name, stat.state, stat.ppid, stat.started) == ("a ) (b", "S", 1, 98361)
    assert (stat.cpu, stat.children_cpu) == (3.0, 1.2)
    assert stat.layout == (94835952308224, 140734285304560)


@pytest.mark.parametrize(
    ("machine", "number", "name"),
    [
        ("x86_64", 202, "futex"),
        ("x86_64", 73, "flock"),
        ("x86_64", 61, "wait4"),
        ("x86_64", 7, "poll"),
        ("x86_64", 230, "clock_nanosleep"),
        ("aarch64", 98, "futex"),
        ("aarch64", 32, "flock"),
        ("aarch64", 260, "wait4"),
        ("aarch64", 73, "ppoll"),
        ("aarch64", 115, "clock_nanosleep"),
        ("aarch64", 63, "read"),
        ("aarch64", 207, "recvfrom"),
        ("aarch64", 7, "syscall 7"),
        ("riscv64", 98, "syscall 98"),
    ],
)
def test_numbers_of_system_calls(machine: str, number: int, name: str) -> None:
    assert name_of(number, machine) == name


def test_call_with_arguments() -> None:
    line = "202 0x5640d311aac0 0x189 0x0 0x0 0x0 0xffffffff 0x7fff41154be0 0x7f1a2eca3f16\n"
    call = parse_call(line, "x86_64")
    assert (call.name, call.args[0], call.stack) == ("futex", 0x5640D311AAC0, 0x7FFF41154BE0)
    assert is_private(call) is True
    assert looks_like_semaphore(call)
    assert parse_call("98 0x1 0x0 0x0 0x0 0x0 0x0 0x2 0x3", "aarch64").name == "futex"


@pytest.mark.parametrize(("line", "name"), [("running", "running"), ("-1 0x7ffd 0x7f1a", ""), ("", "")])
def test_call_of_a_thread_that_is_in_none(line: str, name: str) -> None:
    assert parse_call(line).name == name


def test_futex_on_the_waiters_own_stack_is_no_semaphore() -> None:
    assert not looks_like_semaphore(Call("futex", (0x7000_0100, 0x189, 0, 0, 0, 0), stack=0x7000_0000))
    assert not looks_like_semaphore(Call("futex", (0x5000_0000, 0x80, 2, 0, 0, 0), stack=0x7000_0000))


def test_minus_one_is_minus_one_in_either_width() -> None:
    assert Call("wait4", (0xFFFFFFFF, 0, 0, 0, 0, 0)).signed(0) == -1
    assert Call("wait4", (0xFFFFFFFFFFFFFFFF, 0, 0, 0, 0, 0)).signed(0) == -1


def test_locks_with_a_waiter_and_one_without_pid() -> None:
    held, waits, anonymous = parse_locks(
        "1: FLOCK  ADVISORY  WRITE 4156 fe:00:2146855 0 EOF\n"
        "1: -> FLOCK  ADVISORY  WRITE 4158 fe:00:2146855 0 EOF\n"
        "2: OFDLCK ADVISORY  READ -1 00:2d:12 0 EOF\n"
    )
    assert (held.kind, held.mode, held.pid, held.file, held.waits) == ("FLOCK", "WRITE", 4156, "fe:00:2146855", False)
    assert (waits.pid, waits.waits, waits.inode) == (4158, True, 2146855)
    assert (anonymous.kind, anonymous.mode, anonymous.pid) == ("OFDLCK", "READ", -1)
    (of_descriptor,) = parse_locks("lock:\t1: POSIX  ADVISORY  WRITE 77 08:01:5 0 EOF")
    assert (of_descriptor.kind, of_descriptor.pid) == ("POSIX", 77)


def test_only_the_blocking_lock_calls_wait() -> None:
    assert kind_waited_for(Call("flock", (3, 2, 0, 0, 0, 0))) == "FLOCK"
    assert kind_waited_for(Call("fcntl", (3, 7, 0, 0, 0, 0))) == "POSIX"
    assert kind_waited_for(Call("fcntl", (3, 6, 0, 0, 0, 0))) == ""
    assert kind_waited_for(Call("fcntl", (3, 38, 0, 0, 0, 0))) == "OFDLCK"


MAPS = """\
55a000000000-55a000200000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 rw-s 00000000 00:19 3                          /dev/shm/sem.mp-x (deleted)
7f0000002000-7f0000003000 r-xp 00000000 fe:00 99                         /usr/lib/a name with blanks.so
"""


def test_shared_mappings_only() -> None:
    (semaphore,) = shared_mappings(MAPS)
    assert (semaphore.start, semaphore.end) == (0x7F0000000000, 0x7F0000001000)
    assert (semaphore.file, semaphore.path) == (("00:19", "3"), "/dev/shm/sem.mp-x (deleted)")


def test_descriptor_flags_and_mounts() -> None:
    assert access_in("pos:\t0\nflags:\t0100000\nmnt_id:\t24\n") == {"read"}
    assert access_in("flags:\t02100001\n") == {"write"}
    assert access_in("flags:\t02\n") == {"read", "write"}
    assert access_in("") == frozenset()
    mounts = parse_mounts(
        "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "40 27 0:50 / /data rw - nfs4 filer:/export rw,vers=4.2\n"
    )
    assert mounts == {27: ("ext4", "/dev/vda"), 40: ("nfs4", "filer:/export")}
    assert is_device("/dev/nvidia0")
    assert not is_device("/dev/null")
    assert is_terminal("/dev/pts/3")


def test_polled_descriptors() -> None:
    array = struct.pack("<iHHiHHiHH", 5, 1, 0, 6, 4, 0, -1, 1, 0)
    assert parse_pollfds(array) == (Watched(5, "read"), Watched(6, "write"))
    info = "pos:\t0\nflags:\t02\ntfd:        7 events:       19 data:  7  pos:0 ino:1 sdev:f\n"
    assert epoll_targets(info) == (Watched(7, "read"),)
    assert epoll_targets("") is None


@pytest.mark.parametrize(
    ("name", "args", "limit"),
    [
        ("poll", (1, 1, 0xFFFFFFFF, 0, 0, 0), False),
        ("poll", (1, 1, 5000, 0, 0, 0), True),
        ("ppoll", (1, 1, 0, 0, 0, 0), False),
        ("ppoll", (1, 1, 0x7F00, 0, 0, 0), True),
        ("pselect6", (1, 1, 0, 0, 0, 0), False),
        ("select", (0, 0, 0, 0, 0x7F00, 0), True),
        ("epoll_wait", (3, 1, 1, 0xFFFFFFFFFFFFFFFF, 0, 0), False),
        ("epoll_pwait2", (3, 1, 1, 0x7F00, 0, 0), True),
    ],
)
def test_time_limit_of_a_poll(name: str, args: tuple[int, ...], limit: bool) -> None:
    assert has_limit(Call(name, args)) is limit


def test_sockets_in_both_widths() -> None:
    header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    (four,) = parse_table(
        "tcp", header + "   0: 0100007F:1F90 0200000A:01BB 01 00000000:00000000 00:00000000 00000000 0 0 4242 1 0\n"
    )
    assert (four.protocol, four.local, four.remote, four.inode) == ("tcp", "127.0.0.1:8080", "10.0.0.2:443", 4242)
    (six,) = parse_table(
        "tcp6",
        header + "   0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000001000000:01BB 0A "
        "00000000:00000000 00:00000000 00000000 0 0 4243 1 0\n",
    )
    assert (six.protocol, six.local, six.remote, six.state) == ("tcp", "127.0.0.1:8080", "[::1]:443", "0A")


def test_status_texts() -> None:
    status = "Name:\tx\nSigCgt:\t0000004000004002\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
    assert switches_in(status) == 695
    assert catches(status, 39)
    assert catches(status, 2)
    assert not catches(status, 40)
    assert not catches("", 39)


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        ("hrtimer_nanosleep", "sleep"),
        ("anon_pipe_read", "pipe-read"),
        ("do_wait", "child"),
        ("locks_lock_inode_wait", "file-lock"),
        ("n_tty_read", "terminal-read"),
        ("futex_do_wait", "unknown"),
        ("", "unknown"),
    ],
)
def test_wait_channel_alone(channel: str, kind: str) -> None:
    assert by_channel(channel).kind == kind
