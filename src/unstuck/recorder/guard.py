"""Our own faults: caught where they happen, noted once, and the probe is switched off for good."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

OFF: dict[str, str] = {}
_removers: dict[str, Callable[[], object]] = {}


def on(name: str, remove: Callable[[], object]) -> None:
    """Register a probe and how to take it out again."""
    _removers[name] = remove


def off(name: str, fault: Exception) -> None:
    """Switch a probe off because of `fault`; says so once, in the journal, or where that fails in the flight file.

    What a signal handler raised while a hook ran is no fault of ours: it goes on to where it would have gone."""
    if _raised_by_handler(fault):
        raise fault
    if name in OFF:
        return
    OFF[name] = f"{type(fault).__name__}: {fault!s}"
    remove = _removers.pop(name, None)
    try:
        if remove is not None:
            remove()
    except Exception as second:
        OFF[name] += f" (and it could not be removed: {second!s})"
    _tell(name, OFF[name])


def attempt(name: str, action: Callable[..., object], *arguments: object) -> None:
    """Call it; a fault switches the probe off."""
    try:
        action(*arguments)
    except Exception as fault:
        off(name, fault)


def _raised_by_handler(fault: BaseException) -> bool:
    """A handler that the script (or torch, of SIGCHLD) has set is among the frames it came through."""
    trace = fault.__traceback__
    inside = []
    while trace is not None:
        inside.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    if len(inside) < 2:
        return False
    import _signal  # type: ignore[import-not-found]  # as in signals

    for number in range(1, _signal.NSIG):
        try:
            handler = _signal.getsignal(number)
        except ValueError:
            continue
        code = getattr(getattr(handler, "__func__", handler), "__code__", None)
        if code is not None and any(each is code for each in inside[1:]):
            return True
    return False


def _tell(name: str, why: str) -> None:
    try:
        from .records import ProbeOff

        sys.modules[__package__ + ".journal"].write(ProbeOff(probe=name, why=why))
    except Exception:
        try:
            sys.modules[__package__ + ".flight"].write_off(name, why)
        except Exception:
            pass


def remove(name: str) -> None:
    """Take one out, if it is in."""
    _removers.pop(name, int)()


def remove_all() -> None:
    """Take every hook out; the training goes on unrecorded."""
    for name in list(_removers):
        remove = _removers.pop(name)
        try:
            remove()
        except Exception as fault:
            OFF[name] = f"{type(fault).__name__}: {fault!s}"


def installed() -> list[str]:
    return sorted(_removers)
