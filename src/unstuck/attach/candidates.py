"""The trainings of this machine that could be looked at: one line each, the oldest first."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from unstuck.attach.access import as_root, is_python, owner, user
from unstuck.attach.activity import activity, worker_activity
from unstuck.attach.blocked_for import training
from unstuck.attach.target import is_ours, root_of, torch_loaded
from unstuck.model import Case
from unstuck.observer import proc
from unstuck.observer.look import Observer
from unstuck.observer.proc import Trouble
from unstuck.observer.stacks import PySpy
from unstuck.observer.tree import Member, Tree, by_stack
from unstuck.report.page import Page, Piece
from unstuck.report.wording import program
from unstuck.rules.words import shorten
from unstuck.text import count, seconds

_CPU_SECONDS = 0.2  # over which the processor time is taken
_PY_SPY_SECONDS = 1.0  # that py-spy may take for one line of the list
_TREES_WITH_STACKS = 12  # of more trees than that the kernel's word must do
_AT_A_TIME = 4


@dataclass(frozen=True)
class Candidate:
    pid: int
    age: float
    cpu: float
    """Share of a core that the whole tree uses now."""
    processes: int
    doing: str
    command: str
    user: str


def candidates() -> list[Candidate]:
    """Roots of trees with torch in them that we may look into, the oldest first."""
    trees = [Tree(root).members(Trouble()) for root in _roots()]
    trees = sorted((tree for tree in trees if tree), key=lambda tree: tree[0].stat.started)
    begun = time.monotonic()
    before = [_cpu(tree) for tree in trees]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        words = list(pool.map(_doing, trees, (number < _TREES_WITH_STACKS for number in range(len(trees)))))
    time.sleep(max(0.0, begun + _CPU_SECONDS - time.monotonic()))
    passed = time.monotonic() - begun
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    return [
        Candidate(
            pid=tree[0].pid,
            age=max(0.0, now - tree[0].stat.started / proc.TICKS),
            cpu=round(max(0.0, _cpu(tree) - used) / passed, 2),
            processes=len(tree),
            doing=word,
            command=_command(tree[0]),
            user=user(owner(tree[0].pid) or 0),
        )
        for tree, used, word in zip(trees, before, words, strict=True)
        if proc.alive(tree[0].pid)
    ]


def hidden() -> int:
    """Python processes of other users, into which we may not look: some may be trainings."""
    if os.geteuid() == 0:
        return 0
    others = (pid for pid in proc.numbers("/proc") if owner(pid) not in (None, os.geteuid()))
    return sum(1 for pid in others if is_python(pid) and not proc.link(f"/proc/{pid}/exe"))


def show(found: list[Candidate], as_json: bool) -> None:
    """On standard output."""
    from unstuck.report.screen import Screen
    from unstuck.serial import dump_text

    unseen = hidden()
    if as_json:
        sys.stdout.write(dump_text({"candidates": [asdict(one) for one in found], "hidden": unseen}))
        return
    out = sys.stdout
    page = Page(Screen.of(out))
    _table(page, found)
    if unseen:
        page.blank()
        noun = "process" if unseen == 1 else "processes"
        page.whole((f"{unseen:,} Python {noun} of other users cannot be seen from here: {as_root()}", "dim"), indent=2)
    page.next_command(f"unstuck attach {found[0].pid}")
    out.write(f"\n{page}")


# --- finding -------------------------------------------------------------------------------------------------


def _roots() -> list[int]:
    """Cheap questions first: the maps, which are long, only of Python processes of ours, and of each tree till one."""
    mine = os.geteuid()
    apart = {os.getpid(), *proc.ancestors(os.getpid())}
    known: dict[int, int] = {}
    trees: dict[int, list[int]] = {}
    for pid in proc.numbers("/proc"):
        if (mine == 0 or _is_of(pid, mine)) and is_python(pid):
            trees.setdefault(root_of(pid, known), []).append(pid)
    return [
        root
        for root, pids in trees.items()
        if root not in apart and not is_ours(proc.command(root)) and any(map(torch_loaded, pids))
    ]


def _is_of(pid: int, uid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == uid
    except OSError:
        return False


def _cpu(tree: Iterable[Member]) -> float:
    stats = (proc.stat(member.pid) for member in tree)
    return sum(stat.cpu for stat in stats if stat is not None)


def _doing(tree: tuple[Member, ...], with_stacks: bool) -> str:
    observer = Observer(tree[0].pid, stacks=PySpy(limit=_PY_SPY_SECONDS))
    first = next(iter(training(observer.look(stacks=False))), None)
    if first is None:
        return "ended"
    if with_stacks:
        look = observer.look(only={first.pid})
        first = next((process for process in look.processes if process.pid == first.pid), first)
    if by_stack(first.threads) == "worker":
        return f"a worker that its run left behind: {worker_activity(first)}"
    return activity(first.main_thread)


# --- drawing -------------------------------------------------------------------------------------------------


def _table(page: Page, found: list[Candidate]) -> None:
    """Two lines each: what it is, and beneath that what it does."""
    users = len({one.user for one in found}) > 1
    head = ["pid", "age", "cpu", "processes", *["user"] * users, "command, and what it does"]
    rows: list[list[Piece]] = []
    for one in found:
        age = " ".join(seconds(round(one.age)).split()[:2])
        cells = [str(one.pid), age, f"{one.cpu:.0%}", str(one.processes), *[one.user] * users]
        rows += [[*cells, (one.command, "bold")], [*[""] * len(cells), (one.doing, "dim")]]
    page.line((f"{count(len(found), 'training')} can be looked at here", "bold"))
    page.blank()
    page.table(head, rows)


def _command(member: Member) -> str:
    """`train.py --lr 0.1`: the script or module and its arguments, without the interpreter."""
    name = program(Case(command=member.command))
    words = list(member.command)
    last = name.rpartition(" ")[2]
    place = next((number for number, word in enumerate(words) if os.path.basename(word) == last), len(words))
    text = " ".join(" ".join([name, *words[place + 1 :]]).split())
    return shorten(text)
