"""The rules of the data, on facts made by hand: where each speaks, how loud, and where it stays silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
import torch

from unstuck.model import Case, Finding
from unstuck.recorder.probes.data import statistics_report
from unstuck.recorder.probes.data.statistics import Gathered
from unstuck.recorder.records.data import DataSeen, GivenLayer, LabelCounts, LoaderData, Scale, Scanned
from unstuck.recorder.records.learning import Learning, Loss, LossHead, Targets
from unstuck.rules import data as family
from unstuck.rules.data.batches_not_shuffled import _jumps
from unstuck.rules.data.contents import Data, is_code
from unstuck.rules.diagnose import diagnose

LOADER = LoaderData(
    loader=0,
    site=("/project/train.py", 9, "main"),
    made=("/project/train.py", 5, ""),
    dataset="TensorDataset",
    sampler="RandomSampler",
)


def record(gathered: Gathered, rows: int = 1000) -> LoaderData:
    return statistics_report.filled(replace(LOADER, samples=rows), gathered, trains=True)


def about(x: torch.Tensor, y: torch.Tensor | None = None, batch: int = 0, **more: Any) -> LoaderData:
    """What a reading of this table tells."""
    gathered = Gathered(whole=True)
    batch = batch or len(x)
    for start in range(0, len(x), batch):
        parts = [x[start : start + batch]] if y is None else [x[start : start + batch], y[start : start + batch]]
        gathered.take(parts, list(range(start, min(len(x), start + batch))))
    return replace(record(gathered, len(x)), **more)


def findings(
    told: LoaderData, kind: Literal["data", "scan"] = "data", given: tuple[GivenLayer, ...] = ()
) -> dict[str, Finding]:
    if kind == "data":
        case = Case(data=(DataSeen(pid=7, at=1.0, loaders=[told], given=list(given)),), outcome="finished")
    else:
        case = Case(scans=(Scanned(pid=7, at=1.0, data=told),), outcome="finished")
    diagnosis = diagnose(case, family.RULES)
    assert diagnosis.probes_off == ()
    return {finding.rule: finding for finding in diagnosis.findings}


def given(kind: str, scale: Scale | None) -> GivenLayer:
    return GivenLayer(layer="net.0", kind=kind, shape=[50, 5], scale=scale)


def normal(rows: int = 1000, columns: int = 5, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def labels(told: LoaderData) -> LabelCounts:
    assert told.labels is not None
    return told.labels


def test_plain_data_is_left_alone() -> None:
    assert findings(about(normal(), torch.arange(1000) % 3)) == {}
    assert findings(about(normal(), torch.arange(1000) % 3), "scan") == {}


def test_a_loader_that_does_not_train_is_left_alone() -> None:
    assert findings(about(100 * normal(), torch.arange(1000) % 3, trains=False)) == {}


@pytest.mark.parametrize("value", [-999.0, 9999.0, 1e9, -1e6, 99999.0, 65535.0])
def test_codes_are_known(value: float) -> None:
    assert is_code(value)
    x = normal()
    x[::40, 2] = value
    found = findings(about(x))
    assert list(found) == ["missing-values"]
    assert found["missing-values"].severity == "info"
    assert "column 2" in found["missing-values"].title
    assert found["missing-values"].where.line == 5


def test_nan_and_infinity_name_their_samples() -> None:
    x = normal()
    x[17, 1], x[400, 1], x[30, 3] = float("nan"), float("nan"), float("inf")
    finding = findings(about(x))["missing-values"]
    assert finding.where.sample == 17
    assert any("17, 30, 400" in line for line in finding.evidence)


def test_a_clipped_column_has_no_code() -> None:
    assert findings(about(normal().clamp(-1.5, 1.5))) == {}


def test_unscaled_is_information_where_nothing_is_known_of_the_training() -> None:
    finding = findings(about(1000 + 80 * normal()))["unscaled-input"]
    assert finding.severity == "info"


def test_unscaled_is_silent_where_the_first_layer_normalizes() -> None:
    told = about(1000 + 80 * normal())
    scale = told.parts[0].scale
    assert findings(told, given=(given("BatchNorm1d", scale),)) == {}
    assert findings(told, given=(given("Linear", about(normal()).parts[0].scale),)) == {}
    assert list(findings(told, given=(given("Linear", scale),))) == ["unscaled-input"]


def test_numbers_next_to_nothing() -> None:
    told = about(1e-9 * normal())
    finding = findings(told, given=(given("Linear", told.parts[0].scale),))["unscaled-input"]
    assert "all values between" in finding.title
    assert "no value is beyond" in finding.evidence[0]
    assert findings(told, given=(given("Linear", about(normal()).parts[0].scale),)) == {}


@pytest.mark.parametrize("x", [0.01 * normal(), torch.eye(5)[torch.arange(1000) % 5], 1e-5 * normal().abs() + 1.0])
def test_small_numbers_that_a_layer_can_tell_apart(x: torch.Tensor) -> None:
    assert not any("all values between" in finding.title for finding in findings(about(x)).values())


def test_columns_of_different_size() -> None:
    x = normal()
    x[:, 0] *= 0.0001
    x[:, 1:4] *= 0.00001
    x[:, 4] *= 0.01
    assert "very different size" in findings(about(x))["unscaled-input"].title


def test_constant_columns() -> None:
    x = normal()
    x[:, 3] = 4.5
    assert findings(about(x))["constant-feature"].title.startswith("Column 3")
    x[:, 3] = 0.0
    assert findings(about(x)) == {}, "of a sample only: a rare 1 may come"
    assert list(findings(about(x), "scan")) == ["constant-feature"]
    x[:, 3] = float("nan")
    assert "NaN" in findings(about(x))["constant-feature"].title


def test_outliers_are_named_and_heavy_tails_are_not() -> None:
    x = normal()
    x[123, 2], x[700, 2] = 90.0, 400.0
    finding = findings(about(x))["outlier-samples"]
    assert finding.where.sample == 700
    assert "123" in finding.title
    g = torch.Generator().manual_seed(1)
    for tail in (
        (1 - torch.rand(2000, 4, generator=g)) ** (-1 / 1.5),
        torch.exp(1.5 * torch.randn(2000, 4, generator=g)),
        torch.randn(2000, 4, generator=g) / torch.randn(2000, 4, generator=g),
    ):
        assert "outlier-samples" not in findings(about(tail))


def test_codes_of_a_category_and_numbers_in_order() -> None:
    g = torch.Generator().manual_seed(2)
    x = normal(1500)
    x[:, 0] = torch.randint(0, 10, (1500,), generator=g)
    odd = (x[:, 0] % 2).long()
    assert findings(about(x, odd))["category-as-number"].severity == "info"
    assert findings(about(x, (x[:, 0] > 4).long())) == {}, "a quantity"
    assert findings(about(x, torch.randint(0, 3, (1500,), generator=g))) == {}, "labels that nothing explains"
    assert "category-as-number" in findings(about(x, odd * 2.0 + 0.1 * normal(1500, 1)[:, 0]))


def test_order_of_the_batches() -> None:
    y = torch.arange(4).repeat_interleave(250)
    told = about(normal(), y, batch=25)
    assert list(findings(told)) == ["batches-not-shuffled"]
    assert findings(told)["batches-not-shuffled"].severity == "info"
    assert findings(replace(told, own_batches=True)) == {}
    mixed = y[torch.randperm(1000, generator=torch.Generator().manual_seed(0))]
    assert findings(about(normal(), mixed, batch=25)) == {}


def test_balance_of_the_labels() -> None:
    y = (torch.arange(1000) % 30 == 0).long()
    assert list(findings(about(normal(), y))) == ["labels-imbalanced"]
    assert findings(about(normal(), (torch.arange(1000) % 5 == 0).long())) == {}


def test_batches_of_one_class_say_nothing_of_the_balance() -> None:
    """Of data that is sorted some batches were read: more of one class by chance."""
    y = torch.cat((torch.zeros(900), torch.arange(1, 4).repeat_interleave(33), torch.full((1,), 3))).long()
    few = about(normal(), y, batch=25)
    few = replace(few, labels=replace(labels(few), entropy=1.0, batch_entropy=0.02))
    assert "labels-imbalanced" not in findings(few)
    assert "labels-imbalanced" in findings(few, "scan")


def test_token_ids_and_masks_are_left_alone() -> None:
    ids = torch.randint(0, 30000, (500, 12), generator=torch.Generator().manual_seed(3))
    bias = torch.zeros(500, 12)
    bias[:, 7:] = float("-inf")
    gathered = Gathered()
    gathered.take({"ids": ids, "bias": bias, "label": torch.arange(500) % 2}, None)
    assert findings(record(gathered)) == {}


def test_numbers_to_the_loss_are_no_classes() -> None:
    g = torch.Generator().manual_seed(4)
    counts = torch.poisson(torch.full((1000,), 2.0), generator=g)
    assert findings(about(normal(), counts)) == {}, "a float that is neither 0 nor 1"
    rare = (torch.arange(1000) % 30 == 0).long()
    assert findings(about(normal(), rare, target_op="mse")) == {}
    assert list(findings(about(normal(), rare, target_op="cross_entropy"))) == ["labels-imbalanced"]
    assert list(findings(about(normal(), rare.float(), target_op="bce_logits"))) == ["labels-imbalanced"]
    sorted_counts = counts.long().sort().values
    assert findings(about(normal(), sorted_counts, batch=25, target_op="squared")) == {}


@pytest.mark.parametrize("none", [-1, -100])
def test_what_is_no_label_is_not_counted(none: int) -> None:
    y = torch.arange(1000) % 2
    y[torch.arange(1000) % 20 > 0] = none
    y[:20] = torch.arange(20) % 2
    assert findings(about(normal(), y)) == {}
    assert labels(about(normal(), y)).classes == 2


def test_minus_one_is_a_class_beside_one() -> None:
    y = 1 - 2 * (torch.arange(1000) % 30 == 0).long()
    assert "Class 1 is" in findings(about(normal(), y))["labels-imbalanced"].title


def test_a_label_that_the_loss_ignores_is_not_counted() -> None:
    gathered = Gathered()
    gathered.targets["[1]"] = ("cross_entropy", 9.0)
    y = torch.arange(1000) % 2
    y[::3] = 9
    gathered.take([normal(), y], None)
    assert {value for value, _ in labels(record(gathered)).counts} == {0.0, 1.0}


def second_task(batch: Any, *targets: str, used: tuple[str, ...] = ()) -> list[str]:
    gathered = Gathered()
    for target in targets:
        gathered.targets[target] = ("mse", None)
    gathered.used.update(used)
    gathered.take(batch, None)
    return list(findings(record(gathered)))


def test_gaps_in_what_comes_after_the_target_are_those_of_another_task() -> None:
    x, gaps = normal(), normal(1000, 1)[:, 0]
    gaps[::3] = float("nan")
    wide = normal(1000, 4)
    wide[::3] = float("nan")
    assert second_task([x, x[:, 0], gaps], "[1]") == []
    assert second_task([x, x[:, 0], gaps], "[1]", "[2]") == []
    assert second_task({"x": x, "label": x[:, 0], "label_b": gaps}, "['label']") == []
    assert second_task([x, x[:, 0], wide], "[1]", used=("[0]",)) == []
    assert second_task([x, x[:, 0], wide], "[1]") == ["missing-values"], "it may be a second input"
    assert second_task([x, x[:, 0], wide], "[1]", used=("[0]", "[2]")) == ["missing-values"]
    assert second_task({"x": x, "label": x[:, 0], "age": gaps}, "['label']") == ["missing-values"]
    assert second_task([gaps, x, x[:, 0]], "[2]") == ["missing-values"]


def jumps(values: list[float]) -> str:
    site = ("train.py", 7, "main")
    loss = Loss(site=site, count=len(values), points=list(enumerate(values)))
    head = LossHead(op="cross_entropy", called=site, target=Targets(constant=1.386, count=900), bare=True)
    return _jumps(Data(7, LOADER, learning=Learning(losses=[loss], heads=[head])))


def test_a_loss_that_comes_back_to_that_of_a_constant_prediction() -> None:
    saw = [1.42, 1.2, 0.9, 0.8]
    assert jumps(saw * 40) 
    assert jumps(saw * 8) == "", "too few steps"
    assert jumps([0.7 * value for value in saw] * 40) == "", "it learns all the same"
    assert jumps([1.38, 1.4] * 80) == "", "it does not fall"
    assert jumps([1.42] * 100 + [0.8] * 60) == "", "it comes down and stays there"


def test_batches_that_come_from_no_loader() -> None:
    gathered = Gathered(has_target=False)
    for label in range(4):
        for _ in range(5):
            x = 1000 + 80 * normal(25, seed=label)
            gathered.take(x, None, open_=True)
            gathered.take_target(torch.full((25,), label), "cross_entropy", None)
    sliced = statistics_report.filled(LoaderData(site=("/project/train.py", 9, "main")), gathered, trains=True)
    found = findings(sliced)
    assert sorted(found) == ["batches-not-shuffled", "unscaled-input"]
    assert "DataLoader" not in found["batches-not-shuffled"].fix.text
    assert all("sampler" not in line for line in found["batches-not-shuffled"].evidence)
    assert "batches that the model got" in found["unscaled-input"].evidence[0]
    assert found["unscaled-input"].where.line == 9
