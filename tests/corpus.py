"""The corpus of faulty scripts, their healthy twins and the silent ones, as tests/faults/expected.json describes it.

tests/faults/README.md says what each field means; a field that these classes do not have is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.conftest import FAULTS, LIMIT, can_mount


@dataclass(frozen=True)
class Script:
    """How one script is run, and what is checked whether it is faulty or healthy."""

    FOLDER: ClassVar[str]

    name: str
    note: str = ""
    default_run: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    launch: str = "PY SCRIPT"
    env: dict[str, str] | None = None
    limit: float = LIMIT
    memory: int | None = None
    device: bool = False
    mounts: bool = False
    outcome: str | None = None
    probes_off: tuple[str, ...] | None = ()

    @property
    def path(self) -> Path:
        return FAULTS / self.FOLDER / f"{self.name}.py"

    def marks(self, run: str) -> list[pytest.MarkDecorator]:
        """`run`: faulty, healthy or attach."""
        return [
            *([] if run in self.default_run else [pytest.mark.slow]),
            *([pytest.mark.skipif(not can_mount(), reason="needs mounts")] if self.mounts else []),
            *([pytest.mark.skipif(not glob("/dev/nvidia[0-9]*"), reason="needs a GPU")] if self.device else []),
        ]


@dataclass(frozen=True)
class Faulty(Script):
    """What `unstuck run` must say about a faulty script."""

    FOLDER = "faulty"

    family: str = ""
    rules: tuple[str, ...] = ()
    line: tuple[int, int] | None = None
    blocked: tuple[int, int] | None = None
    near: int = 0
    line_may_be_missing: bool = False
    sample: int | None = None
    worker: int | None = None
    among: str = "loud"
    only: bool = False
    severity: str | None = "loud"
    title: str = ""
    evidence: int = 1
    says: tuple[str, ...] = ()
    shown: bool = False
    code: int | str | None = None
    signal: int | None = None
    consequence: str | None = None
    alone: bool = False
    blind: bool = False
    attach: str | None = None

    @property
    def spots(self) -> list[tuple[int, int]]:
        """Lines, first and last, that the finding may point to."""
        return [(spot[0] - self.near, spot[1] + self.near) for spot in (self.line, self.blocked) if spot is not None]


@dataclass(frozen=True)
class Healthy(Script):
    """What `unstuck run` must not say about a healthy twin."""

    FOLDER = "healthy"

    strict: bool = False
    without_family: str | None = None
    may_say: str | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Silent(Healthy):
    """A healthy script that has no faulty twin."""

    FOLDER = "silent"

    seeds: tuple[int, ...] = ()


EXPECTED: dict[str, dict[str, dict[str, Any]]] = json.loads((FAULTS / "expected.json").read_text())
SHARED = ("note", "default_run", "env", "launch", "memory", "device", "mounts")
"""Fields of a faulty script that hold for its twin too."""


def read(kind: type[Any], name: str, entry: dict[str, Any], *more: dict[str, Any]) -> Any:
    """The entry's script: what its `checks` say, then what `more` says."""
    checks = EXPECTED["checks"][entry.get("checks", entry.get("family", "silent"))]
    values = dict(checks["faulty" if kind is Faulty else "healthy"])
    for own in more:
        values.update(own)
    return kind(name, **{field: tuple(value) if isinstance(value, list) else value for field, value in values.items()})


def without(entry: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {field: value for field, value in entry.items() if field not in fields}


FAULTY: dict[str, Faulty] = {
    name: read(Faulty, name, entry, without(entry, "checks", "healthy"))
    for name, entry in sorted(EXPECTED["faults"].items())
}
HEALTHY: dict[str, Healthy] = {
    name: read(
        Healthy, name, entry, {field: entry[field] for field in SHARED if field in entry}, entry.get("healthy", {})
    )
    for name, entry in sorted(EXPECTED["faults"].items())
}
SILENT: dict[str, Silent] = {
    name: read(Silent, name, entry, without(entry, "checks")) for name, entry in sorted(EXPECTED["silent"].items())
}


def parameters(scripts: dict[str, Any], run: str) -> list[Any]:
    """One parameter for each script, slow unless `run` is in its default run."""
    return [pytest.param(script, id=name, marks=script.marks(run)) for name, script in scripts.items()]
