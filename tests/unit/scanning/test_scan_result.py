"""What a scan found is decided by rules, each sample for itself, and shown in a few lines."""

from __future__ import annotations

import pytest

from unstuck.recorder.records.data import FailedSample, HungSample, KillingSample, LoaderData, SampleErrors, Scanned
from unstuck.scanning.scan_result import Scan, judge

SITE = ("/job/data.py", 12, "Rows.__getitem__")
WHOSE = LoaderData(dataset="Rows", dataset_site=SITE, made=("/job/train.py", 30, ""), trains=True)


def scan(**found: object) -> Scan:
    return judge(Scanned(data=WHOSE, **{"done": 100, "of": 100, "workers": 2, **found}), ["train.py"], 1.0)  # type: ignore[arg-type]


def test_each_bad_sample_is_named_by_its_rule() -> None:
    errors = SampleErrors(type="ValueError", site=SITE, count=40, first=[FailedSample(sample=7, message="broken")])
    result = scan(
        errors=[errors],
        failed=40,
        hung=[HungSample(sample=8, seconds=10.2, spins=True, site=SITE), HungSample(sample=9, seconds=10.1)],
        died=[KillingSample(sample=10, exitcode=-11), KillingSample(sample=11, exitcode=3)],
    )
    found = {finding.where.sample: finding for finding in result.findings}
    assert {sample: finding.rule for sample, finding in found.items()} == {
        7: "sample-raises",
        8: "sample-spins",
        9: "progress-unknown",
        10: "native-crash",
        11: "uncaught-exception",
    }
    assert found[7].title == "40 samples raise ValueError"
    assert found[7].evidence == ("sample 7: ValueError: broken", "samples 7 and 39 more; 40 of 100 raise in all")
    assert found[8].where.line == 12
    assert "data.py:12 in Rows.__getitem__" in found[8].evidence[0]
    assert result.raised == {7: "ValueError: broken"}
    assert result.hung == [8, 9]


def test_good_data() -> None:
    result = scan(seconds=0.5)
    assert result.findings == ()
    assert list(result.notes()) == [
        "100 samples in 0.5 s with 2 workers",
        "the dataset is Rows at /job/data.py:12, of the training loader built at /job/train.py:30",
    ]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"interrupted": True}, "interrupted: the rest was not read"),
        ({"slow": [(0.6, 7)], "median": 0.002}, "slow samples (half of all take less than 2 ms): 7 (0.6 s)"),
        ({"duplicates": [[1, 5]], "duplicated": 1}, "1 sample is a duplicate: 1 = 5"),
        ({"duplicates": [[1, 5, 6]], "duplicated": 2}, "2 samples are duplicates: 1 = 5 = 6"),
    ],
)
def test_notes(found: dict[str, object], said: str) -> None:
    assert said in scan(**found).notes()
