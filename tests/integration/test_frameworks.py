"""Trainings under other people's loops: the same faults are named as in a bare one, and healthy runs left alone.

The scripts are in tests/faults/frameworks; each takes its variant as an argument. A comment there marks the line:
`# culprit: VARIANT`. docs/frameworks.md has the table of what was found.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FAULTS, Outcome, Runner
from unstuck.recorder import layout as at

pytestmark = pytest.mark.frameworks

SCRIPTS = FAULTS / "frameworks"
NEEDS = {  # script: the package it trains with
    "plain_training": "torch",
    "lightning_training": "lightning",
    "hf_trainer": "transformers",
    "accelerate_training": "accelerate",
    "ignite_training": "ignite",
    "fastai_training": "fastai",
    "stateful_loader": "torchdata",
    "torchdata_nodes": "torchdata",
    "webdataset_training": "webdataset",
    "repeating_loader": "torch",
    "ray_training": "ray",
}
LIMIT = 400.0  # seconds; a busy machine needs many of them to import some of these packages
BAD_SAMPLES = range(2133, 2137)
WITHOUT_NUMBERS = ("fastai_training", "webdataset_training")  # of samples
WITHOUT_INDICES = (*WITHOUT_NUMBERS, "torchdata_nodes", "stateful_loader")  # of the samples of a batch
WORDS = {  # script: what its library calls a learning rate, and the batches of a validation
    "plain_training": ("Try a learning rate of ", "__iter__ end"),
    "lightning_training": ("`lr=", "`Trainer(limit_val_batches=…)`"),
    "hf_trainer": ("`TrainingArguments(learning_rate=", "`Trainer(eval_dataset=…)`"),
    "accelerate_training": ("Try a learning rate of ", "__iter__ end"),
    "ignite_training": ("Try a learning rate of ", "`evaluator.run(loader, epoch_length=…)`"),
    "fastai_training": ("`learn.fit(…, lr=", ""),
}
COUNTED = {  # what it calls the moment
    "lightning_training": "in Lightning: epoch 0, global_step ",
    "hf_trainer": "in the Trainer of transformers: epoch 0, global_step ",
    "ignite_training": "in Ignite: epoch 1, iteration ",
    "fastai_training": "in fastai: epoch 0, train_iter ",
}
OWN_COUNT = ("fastai_training",)  # validates as many batches as its loader says: there is no endless validation


def scripts(*without: str) -> list[Any]:
    """A parameter for each, skipped where its package is not installed."""
    return [
        pytest.param(
            name, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed"), id=name
        )
        for name, package in NEEDS.items()
        if name not in without
    ]


def run(unstuck: Runner, name: str, variant: str, *flags: str) -> Outcome:
    ray = {"RAY_TEMPORARY": os.environ["TMPDIR"]} if name == "ray_training" else {}
    return unstuck.run(SCRIPTS / f"{name}.py", variant, flags=flags, limit=LIMIT, env=ray)


def culprits(variant: str) -> list[tuple[str, int]]:
    """File and line of each mark."""
    mark = re.compile(rf"# culprit: {variant}\b")
    lines = (
        (path.name, *each) for path in SCRIPTS.glob("*.py") for each in enumerate(path.read_text().splitlines(), 1)
    )
    return [(file, number) for file, number, text in lines if mark.search(text)]


def at_culprit(finding: dict[str, Any], variant: str, near: int = 1) -> bool:
    where = finding["where"]
    file = os.path.basename(where["file"] or "")
    return any(file == name and abs((where["line"] or 0) - line) <= near for name, line in culprits(variant))


def first(outcome: Outcome, *rules: str) -> dict[str, Any]:
    """The first finding, which must be by one of these rules."""
    assert outcome.loud, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    assert outcome.loud[0]["rule"] in rules, outcome.err[-3000:]
    return outcome.loud[0]


@pytest.mark.parametrize("name", scripts())
def test_healthy_run_is_silent_and_counted(unstuck: Runner, name: str) -> None:
    outcome = run(unstuck, name, "healthy")
    assert outcome.told == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    counted = outcome.report["run"]
    last = re.findall(r"^done (\d+)$", outcome.out, re.MULTILINE)
    assert counted["outcome"] == "finished"
    assert counted["steps"] >= 3 * 90, "an epoch has 94 batches, or 93"
    assert not last or counted["steps"] == int(last[0])


@pytest.mark.parametrize("name", scripts())
def test_ctrl_c_on_a_moving_run_says_nothing(unstuck: Runner, name: str) -> None:
    report = unstuck.folder / "report.json"
    environment = {"RAY_TEMPORARY": os.environ["TMPDIR"]} if name == "ray_training" else {}
    began = time.monotonic()
    process = unstuck.start("run", "--report", report, SCRIPTS / f"{name}.py", "long", env=environment)
    deadline = began + LIMIT
    while time.monotonic() < deadline and trained_steps() < 20:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    outcome = unstuck.finish(process, report, began)
    assert [finding["rule"] for finding in outcome.loud] == [], outcome.err[-3000:]


def trained_steps() -> int:
    """Steps that the training has made, from its flight files."""
    files = Path(os.environ["TMPDIR"]).glob(f"unstuck-*/*{at.FLIGHT}")
    words = (memoryview(file.read_bytes()[: at.WORDS_END * 8]).cast("q") for file in files)
    return max((each[at.W_STEP] for each in words), default=0)


@pytest.mark.parametrize("name", scripts())
def test_spinning_sample_is_named(unstuck: Runner, name: str) -> None:
    finding = first(run(unstuck, name, "spin", "--on-hang", "stop"), "sample-spins", "main-spins")
    assert at_culprit(finding, "spin"), finding
    assert finding["where"]["sample"] in ((None,) if name in WITHOUT_NUMBERS else (1234,))


@pytest.mark.parametrize("name", scripts(*OWN_COUNT, "repeating_loader"))
def test_endless_validation_is_named(unstuck: Runner, name: str, request: pytest.FixtureRequest) -> None:
    if name == "torchdata_nodes":
        request.applymarker(pytest.mark.xfail(reason="not named yet: docs/frameworks.md", strict=False))
    finding = first(run(unstuck, name, "endless", "--on-hang", "stop"), "endless-epoch")
    assert at_culprit(finding, "endless"), finding
    assert WORDS.get(name, ("", ""))[1] in finding["fix"]["text"], finding


@pytest.mark.parametrize("name", scripts())
def test_nan_sample_is_named(unstuck: Runner, name: str) -> None:
    finding = first(run(unstuck, name, "nan"), "nonfinite-input")
    assert finding["where"]["sample"] in ((None,) if name in WITHOUT_INDICES else BAD_SAMPLES), finding


@pytest.mark.parametrize("name", scripts())
def test_double_softmax_is_named(unstuck: Runner, name: str) -> None:
    finding = first(run(unstuck, name, "softmax"), "activation-applied-twice")
    assert os.path.basename(finding["where"]["file"]) in (f"{name}.py", "parts.py"), finding


@pytest.mark.parametrize("name", scripts())
def test_log_of_zero_in_the_input_is_named(unstuck: Runner, name: str) -> None:
    finding = first(run(unstuck, name, "log"), "nonfinite-born")
    assert at_culprit(finding, "log", near=0), finding
    assert finding["title"].startswith("Log of 0")


@pytest.mark.parametrize("name", scripts())
def test_slow_transform_is_seen(unstuck: Runner, name: str) -> None:
    outcome = run(unstuck, name, "slow")
    found = [finding for finding in outcome.report["findings"] if finding["rule"] == "starved-for-data"]
    assert found, outcome.err[-3000:]  # information where others use the machine


@pytest.mark.parametrize("name", [each for each in scripts() if each.id == "lightning_training"])
def test_overfitting_one_batch_on_purpose_is_left_alone(unstuck: Runner, name: str) -> None:
    outcome = run(unstuck, name, "overfit")
    assert (outcome.told, outcome.code) == ([], 0), outcome.err[-3000:]


@pytest.mark.parametrize("name", [each for each in scripts() if each.id == "lightning_training"])
def test_attach_names_the_hung_sample(unstuck: Runner, name: str) -> None:
    with subprocess.Popen(
        [sys.executable, SCRIPTS / f"{name}.py", "spin"],
        cwd=unstuck.folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "UNSTUCK_TEST_MARK": str(unstuck.folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as training:
        try:
            told = attached(unstuck, training.pid)
        finally:
            os.killpg(training.pid, signal.SIGKILL)
    assert told["findings"], told
    assert told["findings"][0]["rule"] == "sample-spins"
    assert told["findings"][0]["where"]["sample"] == 1234


def attached(unstuck: Runner, pid: int) -> dict[str, Any]:
    """What `attach` says once it says anything."""
    deadline = time.monotonic() + LIMIT
    told: dict[str, Any] = {"findings": []}
    while time.monotonic() < deadline and not told["findings"]:
        time.sleep(5)
        process = unstuck.start("attach", "--json", str(pid))
        told = json.loads(process.communicate()[0])
    return told


@pytest.mark.parametrize("name", [each for each in scripts() if each.id == "plain_training"])
@pytest.mark.skipif(find_spec("dotenv") is None, reason="python-dotenv is not installed")
def test_what_dotenv_runs_is_recorded(unstuck: Runner, name: str) -> None:
    (unstuck.folder / ".env").write_text("TRAINING=1\n")
    report = unstuck.folder / "report.json"
    script = str(SCRIPTS / f"{name}.py")
    began = time.monotonic()
    command = ("-m", "dotenv", "run", "--", sys.executable, script, "healthy")
    process = unstuck.start("run", "--report", report, "--", sys.executable, *command)
    outcome = unstuck.finish(process, report, began, LIMIT)
    assert outcome.report["run"]["steps"] == 3 * 94, outcome.err[-3000:]


@pytest.mark.parametrize("name", [each for each in scripts() if each.id in WORDS])
def test_a_rate_too_high_is_named_in_the_words_of_the_library(unstuck: Runner, name: str) -> None:
    finding = first(run(unstuck, name, "rate"), "learning-rate-too-high")
    assert WORDS[name][0] in finding["fix"]["text"], finding
    assert "layers.2.weight" in finding["title"], finding
    assert "._" not in finding["title"], "not by the private ways of a library"
    if name in COUNTED:
        assert any(line.startswith(COUNTED[name]) for line in finding["evidence"]), finding
