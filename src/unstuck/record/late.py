"""Numbers that are on a GPU, read without waiting for it: it copies them out when it comes to that, we take them later.

Nothing here synchronises: the copy goes into pinned memory that was set aside once, and an event says when it is there.
"""

from __future__ import annotations

import os
import sys
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ROOM = 1 << 13
"""Numbers that can be on their way at one time."""
exact = bool(os.environ.get("UNSTUCK_TRACE_NAN"))
"""Wait for each loss instead: `--trace-nan`."""
used = False
"""Something was on a GPU."""
_waiting: deque[tuple[Any, int, int, Callable[[list[float]], object]]] = deque()
_buffer: Any = None
_next = 0


def away(tensor: Any) -> bool:
    """On a device that is read late."""
    return getattr(tensor, "is_cuda", False) is True


def read(numbers: list[Any], then: Callable[[list[float]], object]) -> None:
    """Have these copied, one number each and all of one device; `then` gets them. Dropped where too many wait."""
    global _buffer, _next, used
    used = True
    torch = sys.modules["torch"]
    on_gpu, count = numbers[0].is_cuda, len(numbers)
    if on_gpu and torch.cuda.is_current_stream_capturing():
        return
    if _buffer is None:
        _buffer = torch.empty(ROOM, dtype=torch.float32, pin_memory=on_gpu)
    start = 0 if _next + count > ROOM else _next
    if _waiting and (count > ROOM or _overlaps(start, count)):
        return
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        whole = torch.stack([number.detach().reshape(()) for number in numbers]) if count > 1 else numbers[0].detach()
        _buffer[start : start + count].copy_(whole.reshape(-1), non_blocking=True)
    event = None
    if on_gpu:
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(numbers[0].device))
    _waiting.append((event, start, count, then))
    _next = start + count


def _overlaps(start: int, count: int) -> bool:
    """Some of that room holds numbers not yet taken."""
    return any(start < first + many and first < start + count for _, first, many, _ in _waiting)


def collect() -> None:
    """Take what has come, oldest first."""
    while _waiting:
        event, start, count, then = _waiting[0]
        if event is not None and not event.query():
            return
        _waiting.popleft()
        then([float(number) for number in _buffer[start : start + count].tolist()])
