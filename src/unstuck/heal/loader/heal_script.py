"""`unstuck run --on-hang heal`: the DataLoaders of a script that knows nothing of it, healed as `unstuck.DataLoader`
heals its own. Inside the script, before it imports torch."""

from __future__ import annotations

import json
import os
import sys
from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "UNSTUCK_HEAL"
HEALING = "_unstuck_healing"
MAX_RESTARTS = 1000  # nobody is there to raise it, and `max_bad` ends a run that loses data
_told: set[str] = set()


def install(module: Any) -> None:
    """`module` is torch.utils.data.dataloader. Loaders of torch make our iterators from here on; classes with iterators
    of their own (torchdata's) are left alone."""
    original = module.DataLoader._get_iterator

    @wraps(original)
    def _get_iterator(self: Any) -> Any:
        try:
            healing = _healing_of(self)
        except Exception as fault:
            _tell_once(f"a DataLoader is not healed: {type(fault).__name__}: {fault}")
            return original(self)
        from .healing_iterators import iterator_of

        return iterator_of(self, healing)

    module.DataLoader._get_iterator = _get_iterator


def _healing_of(loader: Any) -> Any:
    healing = loader.__dict__.get(HEALING)
    if healing is None:
        from .care import Care
        from .healing_iterators import Healing
        from .healing_loader import epoch_length
        from .quarantine import Quarantine

        wanted = json.loads(os.environ[VARIABLE])
        care = Care(
            sample_timeout=wanted["sample_timeout"] if loader.num_workers else None,
            on_bad_sample="skip",
            max_restarts=MAX_RESTARTS,
        )
        healing = Healing(care, Quarantine(care, wanted["quarantine"], epoch_length(loader)))
        loader.__dict__[HEALING] = healing
    return healing


def _tell_once(what: str) -> None:
    if what not in _told:
        _told.add(what)
        print(f"unstuck: {what}", file=sys.stderr, flush=True)
