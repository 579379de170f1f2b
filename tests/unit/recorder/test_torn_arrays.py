"""Arrays whose axes do not mean what they did: tables, sequences, views in a model, returns."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from unstuck.recorder.probes.data import reshape_lines, torn_tables
from unstuck.recorder.probes.learning import backward_returns
from unstuck.recorder.probes.learning.exchanged_views import ExchangedViews
from unstuck.recorder.records.learning import Torn

RNG = np.random.default_rng(0)
TICKS = np.sin(np.arange(600)[:, None] / RNG.uniform(2, 5, 30) + RNG.uniform(0, 6, 30)).astype("float32")


def script(folder: Path, text: str) -> str:
    path = folder / "train.py"
    path.write_text(text)
    return str(path)


# --- tables ---------------------------------------------------------------------------------------------------------


def torn(table: torch.Tensor) -> Torn | None:
    known = torn_tables.TornTables()
    for _ in range(torn_tables.LOOK_AT[0]):
        known.given((table,), None)
    return known.found


def test_a_table_read_the_wrong_way_round() -> None:
    found = torn(torch.from_numpy(TICKS.reshape(30, 600).copy()))
    assert found is not None
    assert (found.how, found.shape, found.before) == ("reshaped", [30, 600], [600, 30])
    assert 5 * found.own < found.other > 0.5


@pytest.mark.parametrize(
    "table",
    [
        torch.from_numpy(TICKS),
        torch.from_numpy(TICKS.T.copy()),
        torch.from_numpy(TICKS).T,
        torch.randn(30, 600),
        torch.randn(600, 2).view(2, 600),
        torch.arange(18_000).view(30, 600),
        (torch.arange(600) // 24 % 7).repeat(30, 1).float() + torch.randn(30, 600),
        torch.randn(30, 1) * torch.ones(30, 600),
        torch.zeros(30, 600),
        torch.from_numpy(TICKS.reshape(30, 600).copy()).requires_grad_(),
    ],
)
def test_tables_that_are_as_they_should_be(table: torch.Tensor) -> None:
    assert torn(table) is None


def test_pairs_made_into_two_rows() -> None:
    first: np.ndarray = np.repeat(np.arange(900), 4)
    pairs = torch.from_numpy(np.stack((first, RNG.integers(900, size=3600)), 1))
    edges = pairs.reshape(2, -1)
    found = torn(edges)
    assert found is not None
    assert found.how == "view"
    assert [torn(each) for each in (pairs, pairs.t(), pairs.t().contiguous())] == [None] * 3
    rows: dict[int, int] = {}
    assert torn_tables._of_tensor(edges[0], rows)[0].dim() == 1, "one row alone may be a part of anything"
    assert torn_tables._of_tensor(edges[1], rows)[0].shape == (2, 3600)


def pictures(count: int = 40, side: int = 20) -> torch.Tensor:
    down, across = np.mgrid[:side, :side] / side
    spots = [np.exp(-((across - x) ** 2 + (down - y) ** 2) * 9) for x, y in RNG.uniform(size=(count, 2))]
    colours = RNG.uniform(size=(count, 1, 1, 3))
    return torch.tensor(np.array(spots)[..., None] * colours + RNG.uniform(size=(count, 1, 1, 3)))


def test_pictures_with_channels_last_read_as_channels_first() -> None:
    last = pictures()
    assert torn(last.permute(0, 3, 1, 2).contiguous()) is None
    assert torn(last) is None
    assert torn(torch.randn(40, 3, 20, 20)) is None
    found = torn(last.clone().reshape(40, 3, 20, 20).clone())
    assert found is not None
    assert found.before == [40, 20, 20, 3]


# --- sequences ------------------------------------------------------------------------------------------------------


def of_lanes(lanes: torch.Tensor) -> Torn | None:
    """`lanes`: steps × lanes."""
    known = torn_tables.TornTables()
    for start in range(0, len(lanes) - 21, 20):
        chunk = lanes[start : start + 20]
        known.given((chunk,), None)
        known.take(lanes[start + 1 : start + 21].reshape(-1))
    return known.record() if known._lanes() is None else known._lanes()


def test_a_stream_cut_across_and_one_cut_along() -> None:
    stream = torch.cumsum(torch.randint(0, 2, (20_000,)), 0) % 9
    found = of_lanes(stream.view(-1, 20))
    assert found is not None
    assert (found.how, found.shape) == ("lanes", [-1, 20])
    assert of_lanes(stream.view(20, -1).t()) is None
    assert of_lanes(torch.randint(9, (1000, 20))) is None


def test_neighbours_in_space_do_not_go_on_in_each_other() -> None:
    field = torch.randint(2, (1000, 1)).expand(-1, 20) * 5 + torch.randint(2, (1000, 20))
    assert of_lanes(field) is None


# --- views in a model -----------------------------------------------------------------------------------------------


def views(result: torch.Tensor) -> Torn | None:
    known = ExchangedViews()
    nodes, waiting = [], [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None:
            nodes.append(node)
            waiting += [following for following, _ in node.next_functions]
    known.look([node for node in nodes if "View" in node.name()], None)
    return known._straddling and Torn(how="mixed", before=known._straddling[0], shape=known._straddling[1])


needs_shapes = pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).clone().grad_fn, "_input_metadata"), reason="nodes say no shapes"
)


@needs_shapes
def test_views_that_cut_rows_apart() -> None:
    x = torch.randn(10, 6, 4, requires_grad=True)
    found = views(x.view(6, 10, 4))
    assert found is not None
    assert (found.before, found.shape) == ([10, 6, 4], [6, 10, 4])
    assert views(x.view(10, 1, 6, 4)) is None
    assert views(x.view(10, 2, 3, 4).transpose(1, 2).reshape(10, 6, 4)) is None
    assert views(x.transpose(0, 1).reshape(60, 4)) is None
    chunked = torch.randn(4, 8, 16, requires_grad=True)
    assert views(chunked.view(8, 4, 16)) is None, "two chunks of each"


def test_the_same_memory_given_to_two_modules_with_sizes_exchanged() -> None:
    known, x = ExchangedViews(), torch.randn(10, 6, 4)
    known.given([x])
    known.given([x.view(60, 4), x.transpose(0, 1), x[:1]])
    assert known._found is None
    known.given([x.view(6, 10, 4)])
    assert known._found == ([10, 6, 4], [6, 10, 4])


def test_nothing_is_read_of_what_vmap_goes_through() -> None:
    known = ExchangedViews()

    def one(x: torch.Tensor) -> torch.Tensor:
        known.given([x])
        tables = torn_tables.TornTables()
        for _ in range(torn_tables.LOOK_AT[0]):
            tables.given((x,), sys._getframe())
        tables.take(x)
        return x.sum()

    torch.func.vmap(one)(torch.randn(3, 40, 60))


# --- in the source --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        "b, t, h = x.shape\n    x = x.view(t, b, -1)",
        "b, t = len(x), x.size(1)\n    x = x.reshape(x.shape[1], len(x), 4)",
    ],
)
def test_sizes_in_another_order(lines: str, tmp_path: Path) -> None:
    site = reshape_lines.exchanging([script(tmp_path, f"def forward(x):\n    {lines}\n    return x\n")])
    assert site is not None
    assert site[1:] == (3, "forward")


@pytest.mark.parametrize(
    "lines",
    [
        "b, t, h = x.shape\n    x = x.view(b, t, 2, -1).transpose(1, 2)",
        "b, t, h = x.shape\n    x = x.transpose(0, 1).reshape(t * b, h)",
        "t, b, h = x.transpose(0, 1).shape\n    y = x.view(b * t, h)",
        "b, t, h = x.shape\n    b, t = t, b\n    x = x.permute(1, 0, 2)",
    ],
)
def test_sizes_in_their_order(lines: str, tmp_path: Path) -> None:
    assert reshape_lines.exchanging([script(tmp_path, f"def forward(x):\n    {lines}\n    return x\n")]) is None


def test_the_line_that_fits_best(tmp_path: Path) -> None:
    text = "N, M = 30, 600\na = x.reshape(N, M).T\nb = x.view(4, 5)\nc = x.view(n, m)\nd = np.reshape(x, (N, -1))\n"
    file = script(tmp_path, text)
    assert reshape_lines.find([file], [30, 600]) == (file, 5, "<module>")
    assert reshape_lines.find([file], [7, 8]) == (file, 4, "<module>"), "its sizes are not known"
    assert reshape_lines.find([file], [1, 2, 3]) is None


# --- returns --------------------------------------------------------------------------------------------------------

LOOP = """
def returns_of(rewards):
    returns, ahead = [], 0.0
    for reward in {order}:
        ahead = reward + 0.9 * ahead
        returns.append(ahead)
    return torch.tensor({result})
"""


@pytest.mark.parametrize(
    ("order", "result", "line"),
    [
        ("reversed(rewards)", "returns", 6),
        ("rewards[::-1]", "returns", 6),
        ("reversed(rewards)", "returns[::-1]", None),
        ("reversed(rewards)", "list(reversed(returns))", None),
        ("rewards", "returns", None),
    ],
)
def test_appended_from_the_last_on(order: str, result: str, line: int | None, tmp_path: Path) -> None:
    site = backward_returns._appended_backwards(script(tmp_path, LOOP.format(order=order, result=result)))
    assert (site and site[1]) == line


def returns_of(rewards: list[float], rate: float = 0.9) -> list[float]:
    found, ahead = [], 0.0
    for reward in reversed(rewards):
        ahead = reward + rate * ahead
        found.append(ahead)
    return found


@pytest.mark.parametrize("rewards", [RNG.normal(size=50).tolist(), [1.0] * 50, [-1.0] * 49 + [0.0]])
def test_returns_are_those_of_the_rewards_in_reverse(rewards: list[float]) -> None:
    backwards = torch.tensor(returns_of(rewards))
    scaled = (backwards - backwards.mean()) / backwards.std()
    for returns in (backwards, scaled):
        assert any(backward_returns._backwards({"rewards": rewards, "returns": returns}))
        assert not any(backward_returns._backwards({"rewards": rewards, "returns": returns.flip(0)}))
    assert not any(backward_returns._backwards({"rewards": rewards, "other": torch.randn(50)}))


def test_returns_of_many_at_once() -> None:
    rewards = [torch.randn(8) for _ in range(30)]
    ahead, found = torch.zeros(8), []
    for reward in reversed(rewards):
        ahead = reward + 0.7 * ahead
        found.append(ahead)
    assert any(backward_returns._backwards({"rewards": rewards, "returns": torch.stack(found)}))
    assert not any(backward_returns._backwards({"rewards": rewards, "returns": torch.stack(found[::-1])}))
    assert not any(backward_returns._backwards({"net": nn.Linear(2, 2), "rewards": rewards}))
