"""Tables that a script holds and draws its batches from itself."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from unstuck.recorder import user_code
from unstuck.recorder.probes.data import own_tables
from unstuck.recorder.probes.data.own_tables import OwnTables
from unstuck.recorder.probes.data.statistics import Gathered
from unstuck.recorder.records.data import Relation

ROWS = 900


@pytest.fixture(autouse=True)
def own_frame_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "is_user_file", lambda file: file == __file__)
    monkeypatch.setattr(own_tables, "MOST_FRAMES", 1)


def pictures() -> tuple[Any, Any]:
    g = torch.Generator().manual_seed(3)
    kinds = torch.randint(0, 4, (ROWS,), generator=g)
    return torch.randn(4, 1, 8, 8, generator=g)[kinds] + torch.randn(ROWS, 1, 8, 8, generator=g), kinds


def holds(x: Any, y: Any, own: OwnTables) -> tuple[Any, Any]:
    look(own)
    return x, y


def look(own: OwnTables) -> None:
    for _ in range(own_tables.LOOK_AT[0]):
        own.look(sys._getframe(1))


def found(x: Any, y: Any, drawn: Any = None, partner: Any = None) -> Relation | None:
    """What is said of two tables that a frame holds; `drawn`: the batches' inputs, and
    `partner`: where in `y` each has its target."""
    own, gathered = OwnTables(), Gathered(has_target=False)
    holds(x, y, own)
    drawn = torch.as_tensor(x) if drawn is None else drawn
    targets = torch.as_tensor(y)[: len(drawn)] if partner is None else torch.as_tensor(y)[partner]
    for few in torch.arange(len(drawn)).split(50):
        gathered.take(drawn[few], None, open_=True)
        gathered.take_target(targets[few], "cross_entropy", None)
    given, target = gathered.parts[""], gathered.parts[".target"]
    kept = gathered.kept.parts
    return own.relation((given, kept[""]), (target, kept[".target"]), target.labels is not None)


@pytest.mark.parametrize("order", ["as text", "reversed", "next"])
def test_tables_in_another_order(order: str) -> None:
    x, y = pictures()
    by_text = torch.tensor(sorted(range(ROWS), key=str))
    x = {"as text": x[by_text], "reversed": x.flip(0), "next": x.roll(-1, 0)}[order]
    augmented = 2 * x + 0.5 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    for kept in (found(x, y), found(x.numpy(), y.numpy()), found(x[:-100], y[:-100]), found(x, y, augmented)):
        assert kept is not None
        assert (kept.paired, kept.rows, kept.coarse) == (order, ROWS, True)
        assert kept.by_mean < 4 < 40 < kept.by_mean_paired


def test_rows_of_features_and_a_quantity() -> None:
    x = torch.randn(ROWS, 6, generator=torch.Generator().manual_seed(2))
    kept = found(x.flip(0), x[:, 0] + x[:, 1])
    assert kept is not None
    assert (kept.paired, kept.coarse) == ("reversed", False)


def test_tables_that_the_script_pairs_in_another_way_say_nothing() -> None:
    x, y = pictures()
    assert found(x.flip(0), y, partner=torch.arange(ROWS - 1, -1, -1)) is None


def test_what_is_no_table_of_samples_is_left_alone() -> None:
    x, y = pictures()
    shown = x.clone()
    assert found(x[:150], y[:150], shown[:150]) is not None, "the whole has enough rows"
    assert found(x[:150].clone(), y[:150].clone(), shown[:150]) is None
    assert found([row.clone() for row in x], y, shown) is None, "a list of rows"
    assert found(x.requires_grad_(), y, shown) is None
    assert found(np.ma.masked_array(shown.numpy()), y, shown) is None
