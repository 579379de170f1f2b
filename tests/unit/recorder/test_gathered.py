"""What is in batches and samples: roles, labels, rows kept, and how a column goes with the target."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch

from unstuck.recorder import tensors
from unstuck.recorder.probes.data import statistics_report
from unstuck.recorder.probes.data.bounded_rows import KeptRows
from unstuck.recorder.probes.data.statistics import TARGET, Gathered
from unstuck.recorder.records.data import ColumnStats, LoaderData, PartSeen
from unstuck.scanning import sample_contents


def told(*batches: Any, samples: bool = True) -> LoaderData:
    gathered, at = Gathered(), 0
    for batch in batches:
        size = next(len(part) for _, part in tensors.parts(batch))
        gathered.take(batch, list(range(at, at + size)) if samples else None)
        at += size
    return record(gathered)


def record(gathered: Gathered) -> LoaderData:
    return statistics_report.filled(LoaderData(), gathered, trains=True)


def roles(*batches: Any) -> dict[str, str]:
    return {part.path: part.role for part in told(*batches).parts}


def test_roles_of_a_tuple() -> None:
    batch = [torch.randn(8, 5), torch.randint(0, 3, (8,))]
    assert roles(batch) == {"[0]": "features", "[1]": "target"}


def test_roles_of_a_dict() -> None:
    batch = {
        "image": torch.rand(4, 3, 8, 8),
        "tokens": torch.randint(0, 999, (4, 12)),
        "mask": torch.ones(4, 12, dtype=torch.bool),
        "bias": torch.zeros(4, 12).masked_fill(torch.rand(4, 12) > 0.5, float("-inf")),
        "pixels": torch.randint(0, 255, (4, 8, 8, 3), dtype=torch.uint8),
        "wave": torch.randn(4, 20, 2),
        "label": torch.tensor([0, 1, 1, 0]),
        "id": torch.arange(4),
    }
    assert roles(batch) == {
        "['image']": "image",
        "['tokens']": "tokens",
        "['mask']": "mask",
        "['bias']": "mask",
        "['pixels']": "image",
        "['wave']": "sequence",
        "['label']": "target",
        "['id']": "label",
    }


def test_a_named_tuple_and_nesting() -> None:
    Pair = namedtuple("Pair", "x y")  # as collate gives it back
    assert [path for path, _ in tensors.parts(Pair([torch.ones(2)], {"a": torch.ones(2)}))] == [".x[0]", ".y['a']"]


def test_one_part_alone_is_no_target() -> None:
    assert roles([torch.randn(8, 5)]) == {"[0]": "features"}


def test_channels_are_the_columns_of_an_image() -> None:
    image = torch.zeros(4, 3, 200, 200)
    image[:, 1] = 200.0
    part = told([image, torch.zeros(4, dtype=torch.int64)]).parts[0]
    assert [means(column) for column in part.columns] == [0.0, 200.0, 0.0]


def test_a_nan_in_a_large_image_is_found_wherever_it_is() -> None:
    image = torch.zeros(4, 3, 401, 401)
    image[2, 1, 399, 7] = float("nan")
    part = told([image, torch.zeros(4, dtype=torch.int64)]).parts[0]
    assert [column.nan for column in part.columns] == [0, 1, 0]
    assert part.bad_samples == [2]


def test_labels_are_counted_and_their_order_seen() -> None:
    sorted_batches = [[torch.randn(10, 2), torch.full((10,), k)] for k in range(4)]
    labels = told(*sorted_batches).labels
    assert labels is not None
    assert labels.classes == 4
    assert labels.batch_entropy == 0.0
    assert labels.entropy == pytest.approx(1.386, abs=1e-3)


def test_empty_texts() -> None:
    for lines in (["a", " ", ""], ("a", " ", "")):
        (texts,) = told([lines, torch.arange(3)]).texts
        assert (texts.path, texts.lines, texts.empty, texts.samples) == ("[0]", 3, 2, [1, 2])


def test_rows_kept_are_the_same_in_whatever_order_they_come() -> None:
    x = torch.randn(9000, 3)
    ids = torch.arange(9000)
    forth, back = KeptRows(), KeptRows()
    for start in range(0, 9000, 450):
        forth.take(ids[start : start + 450], {"a": x[start : start + 450]})
        at = 9000 - 450 - start
        back.take(ids[at : at + 450], {"a": x[at : at + 450]})
    assert len(forth.keys) == 2048
    assert sorted(forth.samples.tolist()) == sorted(back.samples.tolist())
    assert torch.equal(forth.parts["a"].float(), x[forth.samples])
    assert 0.4 < float((forth.samples < 4500).double().mean()) < 0.6


def test_samples_of_different_shapes_are_read_one_by_one() -> None:
    parts = dict(sample_contents.stacked([(torch.randn(k, 3), k) for k in (4, 5, 6)]))
    assert [tuple(each.shape) for each in parts["[0]"]] == [(4, 3), (5, 3), (6, 3)]
    gathered = Gathered(whole=True)
    gathered.take_ragged("[0]", parts["[0]"], [10, 11, 12])
    assert gathered.parts["[0]"].columns.stats(0, 0).count == 15


# --- however large a batch is --------------------------------------------------------------------------------------


def part(batch: Any, samples: list[int] | None = None) -> PartSeen:
    gathered = Gathered()
    gathered.take([batch, torch.zeros(batch.shape[0], dtype=torch.int64)], samples)
    return record(gathered).parts[0]


def means(column: ColumnStats) -> float | None:
    return column.numbers.mean if column.numbers is not None else None


def test_added_masks_are_masks_in_three_dimensions_and_in_four() -> None:
    mask = torch.full((4, 300, 300), float("-inf")).triu(1)
    assert part(mask).role == "mask"
    assert part(mask.unsqueeze(1)).role == "mask"


def test_grey_pictures_without_a_channel_are_read() -> None:
    assert means(part(torch.full((6, 9, 9), 200, dtype=torch.uint8)).columns[0]) == 200.0


def test_hidden_bad_values_are_found_in_any_layout() -> None:
    for layout in (torch.contiguous_format, torch.channels_last):
        image = torch.zeros(6, 3, 300, 300).contiguous(memory_format=layout)
        image[4, 1, 299, 17:19] = float("nan")
        about = part(image, list(range(10, 16)))
        assert [column.nan for column in about.columns] == [0, 2, 0]
        assert (about.bad_rows, about.bad_samples) == (1, [14])


def test_a_sum_that_overflows_is_no_bad_value() -> None:
    assert part(torch.full((4, 3, 250, 250), 60000.0, dtype=torch.float16)).bad_rows == 0


def test_rows_of_millions_of_features_are_read_at_some() -> None:
    rows = torch.zeros(2, 2_200_000)
    rows[1, 5] = float("nan")
    assert part(rows).width == 2_200_000


def test_what_is_bad_everywhere_is_counted_once() -> None:
    about = part(torch.full((3, 3, 200, 200), float("nan")), [5, 6, 7])
    assert (about.bad_rows, about.bad_samples) == (3, [5, 6, 7])
    assert all(column.nan == column.rows for column in about.columns)


def test_of_many_rows_some_are_read_whatever_the_pattern() -> None:
    rows = 500_000
    x = torch.arange(rows, dtype=torch.float32).unsqueeze(1).repeat(1, 2)
    x[77, 1] = float("inf")
    gathered = Gathered()
    gathered.take([x, torch.arange(rows) % 4], list(range(rows)))
    about = record(gathered)
    assert about.labels is not None
    assert gathered.rows == 2048
    assert [round(count / 512, 1) for _, count in about.labels.counts] == pytest.approx([1.0] * 4, abs=0.2)
    assert about.parts[0].bad_samples == [77]
    kept = gathered.kept
    assert torch.equal(kept.parts["[0]"][:, 0].long(), kept.samples)


def test_no_reading_copies_a_batch() -> None:
    """What a reading makes anew is small; the largest is found by asking for every new tensor."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):  # type: ignore[misc]  # torch says nothing of its type
        largest = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            for each in result if isinstance(result, (list, tuple)) else (result,):
                if isinstance(each, torch.Tensor) and each._base is None and not func.is_view:
                    self.largest = max(self.largest, each.numel() * each.element_size())
            return result

    wide = torch.zeros(300, 4, 3000)
    for batch in (
        torch.zeros(64, 128, 128, 3).permute(0, 3, 1, 2),
        torch.full((16, 3, 200, 200), float("nan")),
        torch.full((16, 400, 400), float("-inf")).triu(1),
        torch.zeros(400_000, 3),
        torch.zeros(3000, 1000),
        wide,
        wide[:, :, ::2],
        torch.zeros(9000, 1, 14, 14),
    ):
        labels = torch.zeros(batch.shape[0], dtype=torch.int64)
        with Largest() as seen:
            Gathered().take([batch, labels], None)
        assert 0 < seen.largest <= 1 << 20, batch.shape


def test_labels_of_any_type_are_counted() -> None:
    for dtype in (torch.uint8, torch.uint16, torch.uint64, torch.int8, torch.float16, torch.float8_e4m3fn):
        labels = told([torch.randn(6, 2), torch.tensor([0, 1, 1, 0, 1, 1]).to(dtype)]).labels
        assert labels is not None
        assert labels.counts == [(1.0, 4), (0.0, 2)]


# --- what the model is given, where that comes from no loader ------------------------------------------------------


def test_a_target_that_only_the_loss_is_given() -> None:
    gathered, g = Gathered(has_target=False), torch.Generator().manual_seed(5)
    for _ in range(10):
        codes = torch.randint(0, 6, (64, 2), generator=g).float()
        gathered.take(codes, None, open_=True)
        gathered.take_target((codes[:, 0] % 2).long(), "cross_entropy", None)
    about = record(gathered)
    assert {part.path: part.role for part in about.parts} == {"": "features", TARGET: "target"}
    assert (about.rows, about.batches, about.target_op) == (640, 10, "cross_entropy")
    assert about.labels is not None
    assert about.labels.classes == 2
    link = about.parts[0].columns[0].link
    assert link is not None
    assert link.as_category > 0.9


def test_arguments_of_a_model_hold_no_target_by_custom() -> None:
    gathered = Gathered(has_target=False)
    gathered.take((torch.randn(8, 3), torch.arange(8)), None, open_=True)
    gathered.close()
    assert record(gathered).target is None


def test_a_target_of_another_length_is_not_the_batchs() -> None:
    gathered = Gathered(has_target=False)
    gathered.take(torch.randn(8, 3), None, open_=True)
    gathered.take_target(torch.arange(9), "cross_entropy", None)
    assert list(gathered.parts) == [""]
    assert gathered.kept.parts[""].shape == (8, 3)
