"""Models of plain tensors, without modules, loader or optimizer: their data, output and updates."""

from __future__ import annotations

import warnings

import torch

from unstuck.recorder import loading
from unstuck.recorder.probes.data.batch_statistics import NO_LOADER, BatchStatistics
from unstuck.recorder.probes.learning import graph_reading, model_output
from unstuck.recorder.probes.learning.graph_reading import SavedTensors
from unstuck.recorder.probes.learning.parameters import Parameter
from unstuck.recorder.probes.numerics import computed_values

SCRIPT = """torch.ones(1).std()
def here():
    import sys
    return sys._getframe()
"""
X, W, B, V = torch.randn(30, 4), torch.randn(4, 6), torch.zeros(6), torch.randn(6)


def test_what_the_weights_are_given() -> None:
    loss = (torch.tanh(X @ W.clone().requires_grad_()) @ V.clone().requires_grad_()).pow(2).mean()
    data = graph_reading.data_of(graph_reading.read(loss.grad_fn), SavedTensors())
    assert torch.equal(data, X)
    assert loading.everything() == []
    probe = BatchStatistics()
    for _ in range(3):
        probe.graph_given(data, None, True)
        probe.loss_given(torch.randn(30), "squared", None)
    assert probe.sources[NO_LOADER].gathered.batches == 3
    assert list(probe.given) == ["x @ w"]


def test_a_recurrent_layer_begins_in_zeros_that_are_no_data() -> None:
    table, cell, codes = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True), torch.arange(6).reshape(2, 3)
    assert torch.equal(
        graph_reading.data_of(graph_reading.read(cell(table(codes))[0].sum().grad_fn), SavedTensors()), codes
    )
    rows = torch.randn(2, 3, 4)
    given = graph_reading.data_of(graph_reading.read(cell(rows)[0].sum().grad_fn), SavedTensors())
    assert given.numel() == rows.numel()


def test_rows_that_are_taken_from_a_table() -> None:
    table, rows = torch.randn(5, 3, requires_grad=True), torch.tensor([4, 0])
    for taken in (table[rows], table.index_select(0, rows)):
        graph = graph_reading.read(taken.sum().grad_fn)
        assert graph_reading.rows_asked(graph, SavedTensors())[0] is rows
    # What a layer gives is no table, and beside a product the rows are not what the model is given.
    for loss in ((table * 2)[rows].sum(), (torch.randn(2, 5) @ table).sum() + table[rows].sum()):
        assert graph_reading.rows_asked(graph_reading.read(loss.grad_fn), SavedTensors()) == []


def test_modules_are_followed_between_the_steps_in_which_they_are_watched() -> None:
    probe = BatchStatistics()
    probe.graph_given(X, None, False)
    assert not probe.sources, "what the model gets is not known yet"
    probe.model_given((X,), None)
    probe.graph_given(X, None, False)
    assert probe.sources[NO_LOADER].gathered.batches == 1, "it is the batch of the same step"
    probe.sources[NO_LOADER].step = -1
    probe.graph_given(torch.randn(30, 5), None, False)
    assert probe.sources[NO_LOADER].gathered.batches == 1, "a layer further in"
    probe.graph_given(X, None, False)
    assert probe.sources[NO_LOADER].gathered.batches == 2


def test_outputs_computed_once_more() -> None:
    weight, bias, vector = (each.clone().requires_grad_() for each in (W, B, V))
    for output in (X @ weight, X @ weight + bias, bias + X @ weight, torch.relu(X @ weight) @ vector):
        again = model_output.output(output.grad_fn, SavedTensors())
        assert torch.allclose(again, output)
    assert model_output.output((X @ weight * 2).grad_fn, SavedTensors()) is None


def test_columns_that_stay_alike() -> None:
    value = torch.arange(4.0).unsqueeze(1).repeat(1, 6).requires_grad_()
    entry = Parameter(value)
    entry.take_later(value)
    assert entry.columns_alike
    assert not entry.still_alike


def test_a_spread_that_torch_has_warned_of() -> None:
    names = {"__file__": __file__, "torch": torch}
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        exec(compile(SCRIPT, __file__, "exec"), names)
    frame = names["here"]()
    made = computed_values.warned(frame)
    assert made is not None
    assert made.site is not None
    assert (made.operation, made.why, made.site[1], made.warned) == ("std", "spread-of-too-few", 1, True)
    names.pop("__warningregistry__", None)
    assert computed_values.warned(frame) is None
