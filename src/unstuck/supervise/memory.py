"""Memory of every process of the run, and of the cgroup around it, noted at each tick."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import MemoryCurve, MemoryGroup
    from unstuck.supervise.hangar import Hangar


class Memory:
    """Light: nothing but a few numbers a tick. Filled in by its own change."""

    def __init__(self, root: int, hangar: Hangar) -> None:
        self.root, self.hangar = root, hangar

    def tick(self, now: float) -> None:
        """Note the memory of all processes."""

    def asks(self) -> list[int]:
        """Training processes whose memory grows so that what grows in them should be asked for."""
        return []

    def curves(self) -> tuple[MemoryCurve, ...]:
        return ()

    def groups(self) -> tuple[MemoryGroup, ...]:
        return ()
