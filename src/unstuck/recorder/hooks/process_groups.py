"""Seam: the world and its groups: when a process joins and leaves them; and which line of the user's calls."""

from __future__ import annotations

import os
import sys
from functools import wraps
from time import monotonic_ns

from .. import flight, guard, hiding, journal
from .. import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

BETWEEN_TWO = (at.COLLECTIVES.index("send"), at.COLLECTIVES.index("recv"))
DEEPEST = 60  # frames gone up in search of the user's
MAX_SITES = 4000  # frames that are told apart
MAX_GROUPS = 200  # that are described


class Known:
    """One group: its number here, how many collectives were called in it, and whether this process is in it."""

    __slots__ = ("count", "member", "number")

    def __init__(self, number: int, member: bool) -> None:
        self.number, self.member, self.count = number, member, 0


class Groups:
    """All groups of this process, by torch's name for them: nothing here keeps one alive."""

    def __init__(self) -> None:
        self._module: Any = None
        self.default: Known | None = None
        self._by_name: dict[str, Known] = {}
        self._all: list[Known] = []
        self.sites: dict[tuple[str, int], int] = {}
        """Numbers of the user's lines, by module and line; -1: not the user's. Not by the frame's code: to read that
        raises an audit event, which is heard."""
        self._last_site = 0
        self.made = 0  # groups, by new_group

    def begin(self, module: Any) -> None:
        self._module = module
        flight.follow(self._take)

    def _take(self, new: memoryview[int]) -> None:
        """Another process writes: what was described is described again there."""
        self.forget()
        self.sites.clear()
        self._last_site = 0

    def forget(self, name: str | None = None) -> None:
        """It is destroyed; None: all are."""
        if name is not None:
            self._by_name.pop(name, None)
            return
        self.default, self.made = None, 0
        self._by_name.clear()

    def of(self, group: Any) -> Known | None:
        if group is None:
            return self.default or self._first_use(self._module.GroupMember.WORLD, default=True)
        if type(group) is not self._module.ProcessGroup:
            return None
        known = self._by_name.get(group.group_name)
        return known or self._first_use(group, default=group is self._module.GroupMember.WORLD)

    def counted(self, number: int) -> None:
        """A collective that was announced in this group took place."""
        self._all[number].count += 1

    def _first_use(self, group: Any, default: bool) -> Known | None:
        if type(group) is not self._module.ProcessGroup:
            return None
        name = group.group_name
        known = self._by_name.get(name)
        if known is None:
            ranks = self._module.get_process_group_ranks(group)
            known = self._by_name[name] = Known(len(self._all), group.rank() >= 0)
            self._all.append(known)
            if known.number < MAX_GROUPS:
                from ..records.ranks import CollectiveGroup

                journal.write(
                    CollectiveGroup(number=known.number, name=name, size=len(ranks), ranks=_runs(sorted(ranks)))
                )
        if default:
            self.default = known
        return known

    def site(self, frame: FrameType | None) -> int:
        """Number of the user's line that called; 0 where there is none, as in a thread of torch's own."""
        for _ in range(DEEPEST):
            if frame is None:
                return 0
            name = dict.get(frame.f_globals, "__name__")
            if type(name) is not str:
                name = ""
            elif name[:6] == "torch.":  # before its line is asked for: to find that out takes a microsecond a frame
                frame = frame.f_back
                continue
            key = name, frame.f_lineno
            number = self.sites.get(key, 0)
            if not number:
                number = self._new_site(key, frame)
            if number >= 0:
                return number
            frame = frame.f_back
        return 0

    def _new_site(self, key: tuple[str, int], frame: FrameType) -> int:
        if len(self.sites) >= MAX_SITES:
            return 0
        from ..records.ranks import CollectiveSite
        from ..user_code import absolute, is_user_file, name_of

        code = frame.f_code
        if not is_user_file(code.co_filename):
            self.sites[key] = -1
            return -1
        number = self.sites[key] = self._last_site = self._last_site + 1
        site = absolute(code.co_filename), frame.f_lineno, name_of(code)
        journal.write(CollectiveSite(number=number, site=site))
        return number


groups = Groups()


def _runs(ranks: list[int]) -> list[tuple[int, int, int]]:
    """0, 1, 2, 3, 8, 10, 12 as (0, 3, 1), (8, 12, 2): a group of thousands in a few words."""
    runs: list[tuple[int, int, int]] = []
    for rank in ranks:
        first, last, step = runs[-1] if runs else (rank, rank, 0)
        if runs and (first == last or rank - last == step):
            runs[-1] = (first, rank, rank - last)
        else:
            runs.append((rank, rank, 1))
    return runs


def install(module: Any) -> None:
    """`module` is torch.distributed.distributed_c10d."""
    groups.begin(module)
    _wrap_joining(module)
    _wrap_leaving(module)


def _wrap_joining(module: Any) -> None:
    original = module.init_process_group

    @wraps(original)
    def init_process_group(*arguments: Any, **options: Any) -> Any:
        guard.attempt("world", joining, module, arguments, options, sys._getframe(1))
        try:
            answer = original(*arguments, **options)
        except BaseException:
            flight.words[at.W_FORMED] = -monotonic_ns()
            raise
        guard.attempt("world", joined, module)
        return answer

    hiding.stand_aside(init_process_group)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    module.init_process_group = init_process_group
    guard.on("world", lambda: setattr(module, "init_process_group", original))


def joining(module: Any, arguments: Any, options: Any, frame: FrameType) -> None:
    from ..records.ranks import WorldJoined
    from ..user_code import site_of

    names = ("backend", "init_method", "timeout", "world_size", "rank")
    given = {**options, **dict(zip(names, arguments, strict=False))}
    rank, world = _number(given.get("rank"), "RANK"), _number(given.get("world_size"), "WORLD_SIZE")
    method, backend = given.get("init_method"), given.get("backend")
    address = ":".join(filter(None, (os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", ""))))
    if type(method) is str and "://" in method and not method.startswith("env:"):
        address = method.partition("://")[2].partition("?")[0]
    w = flight.words
    if rank is not None:
        w[at.W_RANK] = rank
    w[at.W_WORLD], w[at.W_ROLE] = world or 0, at.ROLES.index("rank")
    w[at.W_FORMED] = w[at.W_DISBANDED] = 0
    w[at.W_FORMING] = monotonic_ns()
    journal.write(
        WorldJoined(
            rank=rank,
            world=world,
            backend=backend if type(backend) is str else "",
            address="" if "store" in given and given["store"] is not None else address[:200],
            site=site_of(frame),
            dumps=_dumps(),
            restart=_number(None, "TORCHELASTIC_RESTART_COUNT") or 0,
        )
    )


def _dumps() -> list[str]:
    """As torch finds it: its variable, the older name of that, its place for such files, the older one."""
    given = os.environ.get("TORCH_FR_DUMP_TEMP_FILE") or os.environ.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
    if given:
        return [given]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [os.path.join(cache, "torch", "comm_lib_trace_rank_"), "/tmp/nccl_trace_rank_"]


def _number(given: Any, variable: str) -> int | None:
    if type(given) is int and given >= 0:
        return given
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else None


def joined(module: Any) -> None:
    w = flight.words
    w[at.W_RANK], w[at.W_WORLD] = module.get_rank(), module.get_world_size()
    w[at.W_FORMED] = monotonic_ns()


def _wrap_leaving(module: Any) -> None:
    original = module.destroy_process_group

    @wraps(original)
    def destroy_process_group(group: Any = None) -> Any:
        name = group.group_name if type(group) is module.ProcessGroup else None
        if name is None or group is module.GroupMember.WORLD:
            flight.words[at.W_DISBANDED], name = monotonic_ns(), None
        answer = original(group)
        groups.forget(name)
        return answer

    hiding.stand_aside(destroy_process_group)  # type: ignore[arg-type]  # as above
    module.destroy_process_group = destroy_process_group
    guard.on("world left", lambda: setattr(module, "destroy_process_group", original))
