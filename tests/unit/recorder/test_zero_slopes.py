"""Operations whose slope is 0 everywhere, as the graph shows them: steps, draws, a softmax over one element."""

from __future__ import annotations

import pytest
import torch

from unstuck.recorder.probes.learning import graph_reading


@pytest.mark.parametrize(
    ("shape", "dim", "flat"),
    [
        pytest.param((16, 8, 1), -1, True, id="scores of an attention, over the dimension that is left"),
        pytest.param((16, 1, 8), 1, True, id="over the query"),
        pytest.param((16, 1), 1, True, id="one output"),
        pytest.param((16, 8, 1), 1, False, id="over the items"),
        pytest.param((16, 8), 0, False, id="over the batch"),
        pytest.param((1, 8), 0, False, id="over a batch of one"),
        pytest.param((16, 1, 1), -1, False, id="one item: there is nothing else to run over"),
        pytest.param((16, 4, 8, 1), -1, False, id="heads that attend to one thing"),
    ],
)
@pytest.mark.parametrize("operation", [torch.softmax, torch.log_softmax])
def test_a_softmax_over_one_element(operation: object, shape: tuple[int, ...], dim: int, flat: bool) -> None:
    scores = torch.randn(shape, requires_grad=True)
    node = operation(scores, dim).grad_fn  # type: ignore[operator]
    assert (graph_reading.flat_operation(node) is not None) is flat
    graph = graph_reading.read(node)
    assert graph.flat == ([node] if flat else [])


def test_a_step_and_a_draw() -> None:
    x = torch.randn(8, requires_grad=True)
    assert graph_reading.flat_operation(torch.sign(x).grad_fn) == "sign"
    assert graph_reading.flat_operation(torch.normal(x, torch.ones(8)).grad_fn) == "normal"
    assert graph_reading.flat_operation(x.exp().grad_fn) is None
