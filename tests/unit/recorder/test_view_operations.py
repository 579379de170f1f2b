"""Which operations each reader of a graph goes through, and that these are what torch calls them."""

from __future__ import annotations

import torch

from unstuck.recorder.probes.learning import crossed_loss, dead_terms, graph_reading, model_output, view_operations


def test_each_reader_goes_through_its_own() -> None:
    assert {"ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward"} == graph_reading.VIEWS
    assert {
        "View", "UnsafeView", "Squeeze", "Unsqueeze", "T", "Transpose", "Permute", "Select", "Slice",
    } == dead_terms.VIEWS  # fmt: skip
    assert {
        "View", "UnsafeView", "Squeeze", "Unsqueeze", "T", "Transpose", "Reshape", "Clone", "Expand",
    } == crossed_loss.VIEWS  # fmt: skip
    assert {
        "View", "UnsafeView", "Squeeze", "Unsqueeze", "T", "Transpose", "Permute", "Select", "Slice", "Reshape",
        "Clone", "Expand", "ToCopy",
    } == model_output.VIEWS  # fmt: skip


def test_what_torch_calls_them() -> None:
    x = torch.zeros(2, 1, requires_grad=True)
    shaped = [x.view(1, 2), x.squeeze(1), x.unsqueeze(0), x.t(), x.transpose(0, 1)]
    assert {graph_reading.kind_of(each.grad_fn) for each in shaped} == view_operations.SHAPES - {"UnsafeView"}
    picked = {graph_reading.kind_of(each.grad_fn) for each in (x.permute(1, 0), x.select(0, 0), x[:1])}
    assert picked == view_operations.PICKS
    assert {graph_reading.kind_of(each.grad_fn) for each in (x.expand(2, 3), x.clone())} <= view_operations.COPIES
