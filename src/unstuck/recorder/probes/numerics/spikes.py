"""A loss far above its usual level: noted with the samples that its batch was made of, while they are at hand."""

from __future__ import annotations

import sys

from ... import flight, governor, objects, user_code
from ..death import failures
from ..learning import losses
from . import nan_origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

MOST = 12
UNLIKE = 30.0
"""Times the median row of its batch: heavy tails reach ten."""
IDS = 512
spikes: list[dict[str, Any]] = []


def note(series: losses.Series, value: float, frame: FrameType | None) -> None:
    """A value that stands out."""
    if len(spikes) >= MOST:
        return
    came_late(series, value, flight.steps(), failures.batches())
    if governor.allows():
        with governor.Reading():
            spikes[-1]["rows"] = _unlike(frame)


def came_late(series: losses.Series, value: float, step: int, batch: list[dict[str, object]]) -> None:
    """One that stood out some steps ago; its batch was noted then."""
    if len(spikes) >= MOST:
        return
    about: dict[str, Any] = {
        "step": step,
        "value": value,
        "usual": series.usual - losses.RATE * losses.FAR * series.spread,
        "spread": series.spread,
        "site": series.site,
    }
    if batch and batch[0]["size"] is not None and _few(batch[0]["size"]):
        about["number"], about["indices"] = batch[0]["number"], batch[0]["indices"]
    spikes.append(about)


def _few(size: Any) -> bool:
    return isinstance(size, int) and size <= IDS


def _unlike(frame: FrameType | None) -> list[dict[str, Any]]:
    """Rows of the batch's tensors that are far larger than the others, by name."""
    torch = sys.modules["torch"]
    here = frame
    while here is not None and not user_code.is_user_file(here.f_code.co_filename):
        here = here.f_back
    if here is None or here.f_code.co_flags & objects.FAST != objects.FAST:
        local = dict(here.f_globals) if here is not None else {}
    else:
        local = objects.locals_of(here)
    found: list[dict[str, Any]] = []
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        for name, value in local.items():
            for path, tensor in nan_origin.tensors(value, name, torch, 0):
                if len(found) < 3 and _is_batch(tensor):
                    found += _rows(path, tensor)
    return found


def _is_batch(tensor: Any) -> bool:
    plain = tensor.is_cpu and not tensor.requires_grad and tensor.is_floating_point()
    return bool(plain and tensor.dim() and 4 <= tensor.shape[0] <= 4096 and tensor.numel() <= 1 << 20)


def _rows(path: str, tensor: Any) -> list[dict[str, Any]]:
    sizes = tensor.reshape(tensor.shape[0], -1).abs().amax(dim=1)
    usual = float(sizes.median())
    if usual <= 0:
        return []
    far = (sizes > UNLIKE * usual).nonzero().flatten().tolist()
    if not far or len(far) > max(1, tensor.shape[0] // 10):
        return []
    largest = float(sizes.max())
    return [{"name": path, "rows": far[:6], "largest": largest, "usual": usual, "shape": list(tensor.shape)}]
