"""What a loop tries again and again, from its source."""

from __future__ import annotations

import ast
import textwrap

import pytest

from unstuck.observer.paths import tried


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("while True:\n    try:\n        return np.load(path)\n    except OSError:\n        time.sleep(1)", "path"),
        ("while True:\n    try:\n        x = fetch()\n        break\n    except OSError:\n        pass", "?"),
        (
            "for attempt in range(9):\n    try:\n        return open(self.path)\n    except OSError:\n        pass",
            "?",
        ),
        ("while True:\n    try:\n        return load(path)\n    except OSError:\n        raise", ""),
        ("while True:\n    try:\n        return load(path)\n    except OSError:\n        break", ""),
        ("for path in paths:\n    try:\n        load(path)\n    except OSError:\n        continue", ""),
        ("while True:\n    try:\n        return get(url)\n    except OSError:\n        pass", "?"),
        ("while x:\n    x = step(x)", ""),
        ("while True:\n    def f():\n        try:\n            g(a)\n        except OSError:\n            pass", ""),
    ],
)
def test_what_is_tried(source: str, what: str) -> None:
    module = ast.parse("def f():\n" + textwrap.indent(source, "    "))
    loop = module.body[0].body[0]  # type: ignore[attr-defined]
    assert tried(loop) == what
