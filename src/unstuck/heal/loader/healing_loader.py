"""`unstuck.DataLoader`: torch's DataLoader with workers that are replaced and bad samples that are left out."""

from __future__ import annotations

import math
import os
from typing import Any

import torch.utils.data

from . import resume
from .care import Care
from .healing_iterators import Healing, iterator_of
from .quarantine import BadSample, Quarantine, check_writable

WAYS = ("raise", "skip", "replace")


class DataLoader(torch.utils.data.DataLoader):  # type: ignore[misc]  # torch is not typed here
    """torch's DataLoader, batch for batch, with the same arguments; and these:

    sample_timeout: seconds after which a sample counts as hung. None: never.
    on_bad_sample: what to do with a sample that raises, hangs or kills its worker: "raise" (default), "skip" it, or
        "replace" it by another one of its batch, fetched anew.
    retries: how often such a sample is tried again before it counts as bad; one that hung or killed its worker alone.
    max_restarts: workers that may be replaced in one epoch.
    max_bad: bad samples in one epoch above which it stops: a number, or a share of the epoch (rounded up).
    quarantine: a file that gets one JSON line for each bad sample: its key, the reason, the traceback or stack.

    A worker that dies is replaced in any case, and what it was fetching is fetched again. `state_dict()` and
    `load_state_dict()` go on in the middle of an epoch. See docs/heal-loader.md.
    """

    def __init__(
        self,
        dataset: Any,
        *arguments: Any,
        sample_timeout: float | None = None,
        on_bad_sample: str = "raise",
        retries: int = 1,
        max_restarts: int = 100,
        max_bad: float = 0.01,
        quarantine: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        care = Care(sample_timeout, on_bad_sample, retries, max_restarts, max_bad)
        _check(care)
        _check_dataset(dataset, arguments, options)
        super().__init__(dataset, *arguments, **options)
        if sample_timeout is not None and self.num_workers == 0:
            raise ValueError(
                "sample_timeout needs num_workers of 1 or more: a sample that hangs in the training's own process "
                "cannot be ended"
            )
        if quarantine is not None and not isinstance(quarantine, (str, os.PathLike)):
            raise TypeError(f"quarantine must be the path of a file, not {quarantine!r}")
        path = None if quarantine is None else os.path.abspath(quarantine)
        if path is not None:
            check_writable(path)
        self.sample_timeout, self.on_bad_sample, self.retries = sample_timeout, on_bad_sample, retries
        self.max_restarts, self.max_bad, self.quarantine = max_restarts, max_bad, quarantine
        self._healing = Healing(care, Quarantine(care, path, epoch_length(self)))

    def _get_iterator(self) -> Any:
        return iterator_of(self, self._healing)

    @property
    def bad_samples(self) -> tuple[BadSample, ...]:
        """All that were found bad so far, in all epochs."""
        return tuple(self._healing.quarantine.rows)

    def state_dict(self) -> dict[str, Any]:
        """Where the present epoch stands. Take it between two batches."""
        return self._healing.progress.state(resume.about(self))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next epoch goes on where that of the state stood; it has the batches that were left."""
        resume.check(state_dict, self)
        self._healing.resumed = state_dict if state_dict["done"] or state_dict["also"] or state_dict["random"] else None


def epoch_length(loader: Any) -> int | None:
    """Samples of an epoch, where the sampler knows."""
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return None
    try:
        if loader.batch_sampler is not None and loader.batch_size is None:  # the user's own
            return None
        return len(loader.sampler)
    except (TypeError, NotImplementedError):
        return None


def _check(care: Care) -> None:
    if care.on_bad_sample not in WAYS:
        raise ValueError(f"on_bad_sample must be one of {', '.join(map(repr, WAYS))}, not {care.on_bad_sample!r}")
    seconds = care.sample_timeout
    if seconds is not None and not (_is_number(seconds) and 0 < seconds < math.inf):
        raise ValueError(f"sample_timeout must be a number of seconds above 0, or None, not {seconds!r}")
    for name in ("retries", "max_restarts"):
        value = getattr(care, name)
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} must be a whole number of 0 or more, not {value!r}")
    limit = care.max_bad
    if not _is_number(limit) or not (0 <= limit <= 1 if isinstance(limit, float) else limit >= 0):
        raise ValueError(f"max_bad must be a number of samples (10) or a share of them (0.01), not {limit!r}")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _check_dataset(dataset: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """What torch says of these comes late, or without saying what is missing."""
    kind = type(dataset)
    if isinstance(dataset, torch.utils.data.IterableDataset):
        return
    if not hasattr(kind, "__getitem__"):
        raise TypeError(
            f"{kind.__name__} has no __getitem__: a dataset needs it, or IterableDataset as its base and __iter__"
        )
    drawn = len(arguments) > 2 or options.get("sampler") is not None or options.get("batch_sampler") is not None
    if not hasattr(kind, "__len__") and not drawn:
        raise TypeError(
            f"{kind.__name__} has no __len__, so no sample can be drawn from it: add __len__, or pass sampler="
        )
