"""Which files are the user's own: the recorder inside and the observer outside give the same answer."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest

from unstuck.observer.source import is_user_code
from unstuck.recorder.user_code import is_user_file


@pytest.mark.parametrize(
    ("place", "users"),
    [
        ("proj/train.py", True),
        ("proj/lib/python3/train.py", True),
        ("proj/lib/python/train.py", True),
        ("env/lib/python3.11/site-packages/torch/nn.py", False),
        ("usr/lib/python3/dist-packages/numpy/core.py", False),
        ("site-packages-of-mine/train.py", True),
    ],
)
def test_by_its_path(tmp_path: Path, place: str, users: bool) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert (is_user_file(str(file)), is_user_code(str(file))) == (users, users)


def test_the_standard_library_and_what_is_no_file() -> None:
    for path in (json.__file__, str(Path(sysconfig.get_path("stdlib"), "os.py")), "<string>", "<frozen importlib>"):
        assert not is_user_file(path)
        assert not is_user_code(path)
    notebook = "/tmp/ipykernel_77/3.py"
    assert is_user_file(notebook)
    assert is_user_code(notebook)
