"""The settings of a DataLoader that only decide how fast it is, never what it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_PREFETCH = 2  # torch's, where there are workers
ARGUMENTS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")  # by the same name in DataLoader


@dataclass(frozen=True)
class Settings:
    """One candidate. Without workers, what is about workers has no meaning and its default value."""

    num_workers: int = 0
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    start_method: str | None = None
    """None: the default of the platform, or what the script has set."""
    threads: int = 1
    """Intra-op threads in each worker; torch itself takes one."""
    timeout: float = 0
    """Seconds a batch may take: the script's own; without workers there is none."""

    def but(self, **changed: Any) -> Settings:
        """The same with some things changed, and made consistent."""
        made = replace(self, **changed)
        if made.num_workers == 0:
            return Settings(pin_memory=made.pin_memory)
        if made.prefetch_factor is None:
            return replace(made, prefetch_factor=DEFAULT_PREFETCH)
        return made

    @property
    def cost(self) -> tuple[int, int, int, bool]:
        """Of two that are equally fast the one with the lower cost is chosen: fewer processes, less memory."""
        return (self.num_workers, self.threads, self.prefetch_factor or 0, self.persistent_workers)

    @property
    def ahead(self) -> int:
        """Batches that may wait to be taken."""
        return self.num_workers * (self.prefetch_factor or DEFAULT_PREFETCH)

    def arguments(self) -> dict[str, Any]:
        """As they are given to DataLoader."""
        given: dict[str, Any] = {name: getattr(self, name) for name in ARGUMENTS}
        if self.start_method is not None:
            given["multiprocessing_context"] = self.start_method
        if self.timeout:
            given["timeout"] = self.timeout
        return given

    def words(self) -> str:
        """For a table: short, only what is set."""
        said = [f"{self.num_workers} worker" + "s" * (self.num_workers != 1)]
        if self.prefetch_factor not in (None, DEFAULT_PREFETCH):
            said.append(f"prefetch {self.prefetch_factor}")
        said += ["persistent"] * self.persistent_workers + ["pinned"] * self.pin_memory
        if self.threads > 1:
            said.append(f"{self.threads} threads each")
        return ", ".join(said)


def of_loader(loader: Any) -> Settings:
    """The present settings of a loader, from its public attributes."""
    workers = int(loader.num_workers)
    context = loader.multiprocessing_context if workers else None
    return Settings(
        num_workers=workers,
        prefetch_factor=loader.prefetch_factor if workers else None,
        persistent_workers=bool(loader.persistent_workers) if workers else False,
        pin_memory=bool(loader.pin_memory),
        start_method=None if context is None else context.get_start_method(),
        timeout=loader.timeout if workers else 0,
    )
