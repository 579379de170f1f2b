"""`--redact`: nothing of the project is left but names in its code, and the report still says what is wrong."""

from __future__ import annotations

import json

import pytest
from tests.unit.rules.record_cases import CASES, saved_case

from unstuck.model import Case, Finding, Fix, Flight, Where
from unstuck.report.redact import redacted, text
from unstuck.report.report_file import report_text
from unstuck.rules.diagnose import Diagnosis, diagnose

NAMES = sorted(path.name.removesuffix(".json.gz") for path in CASES.glob("*.json.gz"))


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("cannot open /home/ann/secret study/x.pt", "cannot open (path)"),
        ("at /home/ann/proj/train.py:41 in main", "at train.py:41 in main"),
        ("at …/proj/data.py:7", "at data.py:7"),
        ("reads data/patients/0007.dcm twice", "reads (path) twice"),
        ("~/runs/a and ../b/c.txt", "(path) and (path)"),
        ("NaN/Inf in 3/4 of the batches/s", "NaN/Inf in 3/4 of the batches/s"),
        ("key 'ann.smith@clinic' is missing", "key '…' is missing"),
        ('the value is "blue"; it doesn\'t end', "the value is '…'; it doesn't end"),
        ("connects to tcp 10.1.2.3:443", "connects to tcp (address)"),
        ("connects to db.clinic.example:5432", "connects to (address)"),
        ("from https://ann:pw@host.example/x?y=1", "from (address)"),
        ("train.py:41 in Shard.__getitem__", "train.py:41 in Shard.__getitem__"),
        ("the loss was 2.31 at step 28 (lr 1e-3)", "the loss was 2.31 at step 28 (lr 1e-3)"),
    ],
)
def test_texts(said: str, left: str) -> None:
    assert text(said, ["/home/ann/secret study/x.pt"]) == left


def test_commands_lose_their_arguments() -> None:
    words = ["/opt/py/bin/python3", "/home/ann/train.py", "--token", "hunter2"]
    assert redacted({"command": words}, Case()) == {"command": ["python3", "train.py", "…"]}
    assert redacted({"command": ["torchrun", "--nproc", "2", "/a/b.py", "x"]}, Case())["command"] == ["b.py", "…"]


def test_settings_that_a_fix_names_stay() -> None:
    fix = {"fix": {"text": "use 'spawn'", "diff": "+ open('/data/x.bin', on_bad='skip')"}}
    assert redacted(fix, Case()) == {"fix": {"text": "use 'spawn'", "diff": "+ open('…', on_bad='skip')"}}


@pytest.mark.parametrize("extension", [".json", ".html", ".md"])
def test_no_report_names_what_is_hidden(extension: str) -> None:
    secret = "/mnt/clinic-7/ann"
    finding = Finding(
        rule="sample-retries",
        family="hang",
        severity="error",
        confidence=0.9,
        title=f"cannot open {secret}/a b.dcm",
        evidence=(f"`open({secret!r})` failed", "it tries clinic-7.example.org:8443"),
        where=Where(f"{secret}/train.py", 3, "load", 5, sample=f"{secret}/a b.dcm"),
        fix=Fix(f"look at {secret}/a b.dcm", f"- open('{secret}/x')"),
        seen_by="kernel",
    )
    flight = Flight(5, role="main", attempt_target=f"{secret}/a b.dcm", sample_key=f"{secret}/a b.dcm")
    command = ("python", f"{secret}/train.py", "--user", "clinic-7")
    case = Case(command=command, cwd=secret, flights=(flight,), probes_off=(("x", f"{secret}: no"),))
    written = report_text(extension, case, Diagnosis((finding,)), redact=True)
    assert "clinic" not in written
    assert "train.py" in written
    assert "clinic" in report_text(extension, case, Diagnosis((finding,)))


@pytest.mark.parametrize("name", NAMES[::12])
def test_a_redacted_report_says_the_same(name: str) -> None:
    case = saved_case(name)
    diagnosis = diagnose(case)
    plain = json.loads(report_text(".json", case, diagnosis, redact=True))
    assert [f["rule"] for f in plain["findings"]] == [f.rule for f in diagnosis.findings]
    assert "/project" not in json.dumps(plain)
    assert plain["findings"][0]["evidence"]
