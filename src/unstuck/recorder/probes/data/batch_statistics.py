"""What is in the batches, read in main as the loader hands them out: the first ones, then some, within the budget.

One fact tells all that is known so far, ever more rarely, and once more at the end.
"""

from __future__ import annotations

import linecache
import re
import sys
import weakref
from time import monotonic

from ... import facts, flight, governor, gpu, guard, lengths, objects, tensors, user_code
from ... import layout as at
from . import bounded_rows, statistics, statistics_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

    from .passes import Ledger

LOADERS = 4
MOST = 600
"""Batches of a loader that are read."""
ADVANCE, SHARE = 0.04, 0.001
"""Seconds, and share of the time, of what the governor gives: the rest is for how the training learns."""
TELL_AT = (4, 12, 40, 120, 360)
"""Batches read of a loader that trains, at which what is known is told."""
GIVEN = 6
"""Layers that are given data as it came, of which it is noted what they are given."""
MATCHED = 64
"""Targets of losses that are looked for among the parts of a batch,"""
COMPARED = 1 << 15
"""where there are no more numbers than these to compare,"""
FEW = 4
"""and no fewer, where they are some of a part."""
loaders: dict[int, Loader] = {}
given: dict[str, dict[str, Any]] = {}
"""By layer: its class, and the scale of what it is given."""
_spent = 0.0
_began = 0.0
_now: tuple[Loader, list[tuple[str, Any]]] | None = None
"""The batch in work: its loader, and its parts, weakly."""


class Loader:
    """What is known of one loader's data."""

    def __init__(self, loader: Any, ledger: Ledger) -> None:
        own = loader.__dict__
        dataset = source(own.get("dataset"))
        giving = getattr(type(dataset), "__iter__" if lengths.is_iterable(loader) else "__getitem__", None)
        self.gathered = statistics.Gathered()
        self.trains = False
        self.matched = 0
        self.about: dict[str, Any] = {
            "loader": ledger.number,
            "site": ledger.site,
            "made": made(loader, sys._getframe(1)),
            "dataset_site": user_code.code_site(giving),
            "dataset": type(dataset).__qualname__,
            "samples": lengths.length(own.get("dataset")),
            "sampler": type(own.get("sampler")).__qualname__,
            "own_batches": own.get("batch_sampler") is not None and not _is_torchs(own["batch_sampler"]),
            "own_order": not _is_torchs(own.get("sampler")),
            "batch_size": own.get("batch_size"),
        }

    def plain(self) -> dict[str, Any]:
        return {**self.about, "trains": self.trains, **statistics_report.told(self.gathered)}


def look(ledger: Ledger, iterator: Any, batch: Any) -> None:
    """A batch came that is looked at."""
    global _spent, _began, _now
    _now = None
    known = loaders.get(ledger.number)
    _began = _began or monotonic()
    if not governor.allows() or _spent > ADVANCE + SHARE * (monotonic() - _began):
        if known is not None:
            _note_training(known, ledger, iterator)
        return
    if known is None:
        loader = ledger.loader()
        if len(loaders) >= LOADERS or loader is None:
            return
        known = loaders[ledger.number] = Loader(loader, ledger)
    _note_training(known, ledger, iterator)
    if known.gathered.batches >= MOST:
        return
    before = governor.spent
    with governor.Reading():
        _read(known, iterator, batch)
    if known.trains and known.gathered.batches in TELL_AT:
        tell()
    _spent += governor.spent - before


def _note_training(known: Loader, ledger: Ledger, iterator: Any) -> None:
    """A step was made between two batches of one pass."""
    if iterator._num_yielded > 1 and flight.steps() > ledger.steps:
        known.trains = True


def _read(known: Loader, iterator: Any, batch: Any) -> None:
    global _now
    torch = sys.modules["torch"]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        samples, single = indices(iterator)
        known.gathered.take(batch, samples, single=single)
        parts = tensors.parts(batch)
        _now = known, [(path, weakref.ref(part)) for path, part in parts if type(part) is not list]


def indices(iterator: Any) -> tuple[Sequence[int] | None, bool]:
    """Those that the batch just handed out was made of, where they are whole numbers; and whether it is no batch but
    one sample."""
    own = iterator.__dict__
    drawn = own.get("_unstuck_drawn")
    number = own["_rcvd_idx"] - 1 if "_send_idx" in own else own["_num_yielded"] - 1
    if not drawn or own.get("_in_order") is False or own.get("_dataset_kind") == 1:
        return None, False
    index: Any = next((index for key, _, _, index in reversed(drawn) if key == number), None)
    if type(index) is int:
        return [index], True
    if type(index) in (list, tuple) and index and type(index[0]) is int:  # the others are looked at where they are read
        return index, False
    return None, False


def target_is(target: Any, op: str = "", ignored: float | None = None) -> None:
    """A loss function was given this as its target: is it a part of the batch in work?"""
    if _now is not None and target is not None and not gpu.away(target) and "data" not in guard.OFF:
        try:
            _match(target, op, ignored)
        except Exception as fault:
            guard.off("data", fault)


def _match(target: Any, op: str, ignored: float | None) -> None:
    if _now is None:
        return
    known, parts = _now
    if known.matched >= MATCHED:
        return
    known.matched += 1
    for path, ref in parts:
        part = ref()
        if part is not None and part.device == target.device and part.numel() and _same(part, target):
            known.gathered.targets.setdefault(path, (op, ignored))
            return


def _same(part: Any, target: Any) -> bool:
    """The same memory, or the same values; or those of its values that are no gaps."""
    torch = sys.modules["torch"]
    if part.numel() == target.numel() and part.data_ptr() == target.data_ptr() and part.dtype == target.dtype:
        return True
    if not target.numel() <= part.numel() <= COMPARED:
        return False
    if part.numel() == target.numel():
        return bool(torch.equal(_flat(part), _flat(target)))
    if not part.is_floating_point() or target.numel() < FEW:
        return False
    flat = _flat(part)
    flat = flat[torch.isfinite(flat)]
    return bool(flat.numel() == target.numel() and torch.equal(flat, _flat(target)))


def _flat(target: Any) -> Any:
    return target.detach().reshape(-1).double()


def scale_of(kind: str, tensor: Any) -> dict[str, Any] | None:
    """In a step that is watched closely: a layer with parameters is called with data that no layer made before it."""
    if len(given) >= GIVEN or not tensor.is_floating_point() or tensor.dim() < 2 or not tensor.numel():
        return None
    about: dict[str, Any] = {"kind": kind, "shape": [int(size) for size in tensor.shape], "away": gpu.away(tensor)}
    if gpu.away(tensor):
        kept = statistics.channel_dim(tensor, "sequence" if tensor.dim() == 3 else "image")
        most = max(1 << 14, 16 * int(tensor.shape[kept]))
        gpu.bring([gpu.thinned(tensor.detach(), most, kept)], lambda copies: about.update(_scale(copies[0])))
    elif gpu.near(tensor) and tensors.readable(tensor):
        about.update(_scale(tensor.detach()))
    return about


def came(tensor: Any) -> bool:
    """A layer is given this: it is a part of the batch in work, just as the loader gave it."""
    for path, ref in _now[1] if _now is not None else ():
        if _now is not None and ref() is tensor:
            _now[0].gathered.used.add(path)
            return True
    return False


def layer_is_given(name: str, about: dict[str, Any]) -> None:
    """`about`: what `scale_of` gave for it."""
    if len(given) < GIVEN:
        given.setdefault(name, about)


def _scale(tensor: Any) -> dict[str, Any]:
    part = statistics.Part("", tensor)
    torch = sys.modules["torch"]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        rows = bounded_rows.Rows(int(tensor.shape[0]), None)
        rows.search = False
        part.take(tensor, rows)
    return {"scale": statistics_report.scale(part.columns)}


def tell() -> None:
    with governor.Reading():
        facts.tell_anew("data", plain(), at.DATA_STATS)


def last() -> None:
    """At the end of the process."""
    if any(known.trains and known.gathered.batches for known in loaders.values()):
        tell()


def forget() -> None:
    """In a forked child: what its parent read is told by its parent."""
    global _now
    _now = None
    loaders.clear()
    given.clear()


def plain() -> dict[str, Any]:
    torch = sys.modules["torch"]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        told = [known.plain() for known in loaders.values() if known.gathered.batches]
    return {
        "loaders": told,
        "given": [{"layer": name, **about} for name, about in given.items()],
        "step": flight.steps(),
    }


# --- where it is written ---------------------------------------------------------------------------------------


def source(dataset: Any) -> Any:
    """What a Subset, or several of them, is a part of."""
    for _ in range(8):
        inner = (objects.instance_dict(dataset) or {}).get("dataset")
        if inner is None or not _is_torchs(dataset):
            break
        dataset = inner
    return dataset


def made(loader: Any, frame: FrameType | None) -> list[str | int] | None:
    """The line that makes the loader: the one in the user's files that calls its class, or does so for its name."""
    kind = re.compile(rf"\b{re.escape(type(loader).__name__)}\(")
    here = frame
    while here is not None:
        code = here.f_code
        if user_code.is_user_file(code.co_filename):
            lines = linecache.getlines(code.co_filename)
            found = [number for number, text in enumerate(lines, 1) if kind.search(text.partition("#")[0])]
            found = [number for number in found if not lines[number - 1].lstrip().startswith(("class ", "def "))]
            if len(found) > 1:
                found = [number for number in found if _assigns(lines[number - 1], _names(loader, here))][-1:]
            if found:
                return [user_code.absolute(code.co_filename), found[0], ""]
        here = here.f_back
    return None


def _names(loader: Any, frame: FrameType) -> list[str]:
    local = objects.locals_of(frame) if frame.f_code.co_flags & objects.FAST == objects.FAST else {}
    return [name for name, value in {**frame.f_globals, **local}.items() if value is loader]


def _assigns(text: str, names: list[str]) -> bool:
    left = text.partition("=")[0]
    return any(re.search(rf"\b{re.escape(name)}\b", left) for name in names)


def _is_torchs(thing: Any) -> bool:
    return type(thing).__module__.partition(".")[0] in ("torch", "torchdata", "builtins")
