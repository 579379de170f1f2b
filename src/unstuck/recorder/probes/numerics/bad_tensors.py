"""Tensors without a graph that hold NaN or infinity: in the user's frames, or given to an operation of the graph."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from ... import tensors, user_code
from ...records.numerics import BadTensor
from ..learning import sites
from . import edges, source_lines
from .computed import computed

MOST = 6
DEEP = 3


def in_frames(frame: FrameType | None) -> list[BadTensor]:
    """Tensors of the user's frames that were not computed with a gradient and hold what is no number: the data."""
    found: list[BadTensor] = []
    seen: set[int] = set()
    for here in sites.user_frames(frame):
        if len(found) >= MOST:
            break
        local = sites.names(here)
        function, file = user_code.name_of(here.f_code), user_code.absolute(here.f_code.co_filename)
        for name, value in local.items():
            for path, tensor in tensors.plain_tensors(value, DEEP):
                if id(tensor) in seen or not _is_bad(tensor):
                    continue
                seen.add(id(tensor))
                made = computed(f"{name}{path}", file, function, local)
                assigned = source_lines.assigned(name, file, function)
                about = describe(tensor, name=f"{name}{path}", function=function, computed=made, assigned=assigned)
                found.append(about)
    return found


def _is_bad(tensor: Any) -> bool:
    if tensor.requires_grad or not tensor.is_floating_point() or tensor.is_sparse or tensor.is_meta:
        return False
    return tensor.dim() > 0 and not edges.finite(tensor)  # a single number is a logged loss: a consequence


def describe(tensor: Any, **more: Any) -> BadTensor:
    mask = ~torch.isfinite(tensor)
    columns: list[int] = []
    whole: list[int] = []
    if tensor.dim() == 2:
        columns = mask.any(dim=0).nonzero().flatten().tolist()
        whole = mask.all(dim=0).nonzero().flatten().tolist() if tensor.shape[0] > 1 else []
    return BadTensor(
        shape=[int(size) for size in tensor.shape],
        nan=int(torch.isnan(tensor).sum()),
        inf=int(torch.isinf(tensor).sum()),
        negative_inf_only=bool((tensor[mask] == float("-inf")).all()),
        columns=columns[: edges.ROWS],
        bad_columns=len(columns),
        whole_columns=whole[: edges.ROWS],
        address=tensor.data_ptr(),
        **edges.rows_of(mask),
        **more,
    )
