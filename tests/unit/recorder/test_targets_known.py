"""Which part of a batch a loss was given as its target."""

from __future__ import annotations

from typing import Any

import torch

from unstuck.recorder import loading
from unstuck.recorder.loading import Loading
from unstuck.recorder.probes.data.batch_statistics import NO_LOADER, BatchStatistics, Source
from unstuck.recorder.probes.data.statistics import TARGET
from unstuck.recorder.records.data import LoaderData


def known(batch: list[Any], *targets: Any) -> list[str]:
    probe, source = BatchStatistics(), Source(LoaderData(), Loading(0))
    probe._read(source, batch)
    for target in targets:
        probe.loss_given(target, "mse", None)
    return list(source.gathered.targets)


def test_each_target_is_known() -> None:
    batch = [torch.randn(20, 3), torch.randn(20), torch.randn(20)]
    assert known(batch, batch[2].double().unsqueeze(1), batch[1], batch[1]) == ["[2]", "[1]"]
    assert known(batch, torch.randn(20)) == []


def test_a_target_without_its_gaps_is_known() -> None:
    labels = torch.randn(20)
    labels[::3] = float("nan")
    batch = [torch.randn(20, 3), torch.randn(20), labels]
    assert known(batch, labels[~labels.isnan()]) == ["[2]"]
    assert known(batch, torch.randn(13)) == []


def test_no_more_is_compared_than_is_cheap() -> None:
    large = torch.zeros(1 << 18)
    assert known([large], large.clone()) == []
    assert known([large], large) == ["[0]"]


def test_where_no_loader_is_the_batch_is_what_the_model_is_given() -> None:
    assert loading.everything() == []
    probe, frame = BatchStatistics(), None
    x, y = torch.randn(32, 4), torch.arange(32) % 3
    probe.model_given((x,), frame)
    assert probe.came(x)
    probe.loss_given(y, "cross_entropy", None)
    probe.model_given((x,), frame)
    probe.loss_given(x, "mse", None)
    with torch.no_grad():
        probe.model_given((x,), frame)
    gathered = probe.sources[NO_LOADER].gathered
    assert gathered.batches == 2, "what is called without a graph is no training"
    assert list(gathered.targets) == [TARGET, ""]
    assert gathered.parts[TARGET].labels == {0.0: 11, 1.0: 11, 2.0: 10}
    assert gathered.used == {""}
