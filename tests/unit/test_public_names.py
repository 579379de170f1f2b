"""The public names are a promise."""

from __future__ import annotations

import inspect

import pytest

import unstuck


def test_public_names() -> None:
    assert sorted(unstuck.__all__) == [
        "DataLoader",
        "Finding",
        "Plateau",
        "Scan",
        "Tuned",
        "UnstuckError",
        "Watcher",
        "__version__",
        "bounded",
        "guard",
        "scan",
        "tune",
        "watch",
    ]
    assert all(hasattr(unstuck, name) for name in unstuck.__all__)


def test_watch_takes_keywords_only() -> None:
    kinds = {p.name: p.kind for p in inspect.signature(unstuck.watch).parameters.values()}
    assert kinds == dict.fromkeys(("stall_after", "report", "on_finding"), inspect.Parameter.KEYWORD_ONLY)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="no attribute 'wach'"):
        unstuck.wach  # noqa: B018


def test_tune_takes_a_loader_and_keywords() -> None:
    kinds = {p.name: p.kind for p in inspect.signature(unstuck.tune).parameters.values()}
    assert kinds.pop("loader") == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert kinds == dict.fromkeys(("seconds", "consume", "verbose"), inspect.Parameter.KEYWORD_ONLY)
