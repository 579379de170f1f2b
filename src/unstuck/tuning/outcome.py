"""What a search found: a table of all that was measured, the choice, and what it brings. Plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Row:
    """One candidate."""

    name: str
    settings: dict[str, Any]
    """Arguments of DataLoader."""
    samples_per_second: float
    low: float
    high: float
    """95 % interval."""
    relative: float | None
    """To the present settings; None if one of the two could not be measured."""
    start_up: float
    """Seconds to the first batch."""
    error: str = ""
    """Why it could not be measured."""
    present: bool = False
    chosen: bool = False


@dataclass(frozen=True)
class Training:
    """A step of the training, as it is now and as it would be; seconds a batch."""

    compute: float
    wait_now: float
    wait_then: float
    speedup: float
    limited: bool
    """Data would still be what limits it."""


@dataclass(frozen=True)
class Tuned:
    """The result of `unstuck.tune`. `DataLoader(..., **tuned.settings)` is the loader that was chosen."""

    settings: dict[str, Any]
    """Arguments of DataLoader, as chosen."""
    changes: dict[str, Any]
    """Those of them that differ from the present ones; empty if these are to be kept."""
    gain: float
    """Samples a second of the loader alone, chosen to present."""
    keep: bool
    why: str
    """In one sentence."""
    table: tuple[Row, ...]
    training: Training | None = None
    threads: int = 1
    """Intra-op threads to set in each worker; 1 is what torch does by itself."""
    seconds: float = 0.0
    """How long the search took."""
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    """What must be known about it, in sentences."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def from_plain(found: dict[str, Any]) -> Tuned:
    """A newer or older unstuck may know other fields: those that are not known here are left out."""
    known = _known(Tuned, found)
    known["table"] = tuple(Row(**_known(Row, row)) for row in found.get("table", ()))
    known["notes"] = tuple(found.get("notes", ()))
    training = found.get("training")
    known["training"] = None if training is None else Training(**_known(Training, training))
    return Tuned(**known)


def _known(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in found.items() if name in names}
