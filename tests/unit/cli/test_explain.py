"""`explain`: a page about each rule, what a pasted message means, and help for a name that is nearly right."""

from __future__ import annotations

import io
import sys
import types

import pytest

from unstuck import rules
from unstuck.cli import main
from unstuck.rules.rule import Rule

PAGE = """file-lock-held: waits for a file lock that somebody else holds.

What it sees
    A thread blocked in flock, for a long and long and long and long and long and long and long time
    on a file.

    Another paragraph.

Why it matters
    Each waits for the other.

Fix
    Release it:
    `with lock:`
"""


@pytest.fixture(autouse=True)
def _two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name, family, page in (
        ("file-lock-held", "hang", PAGE),
        ("endless-epoch", "loop", "endless-epoch: it goes on."),
    ):
        module = types.ModuleType(f"made_{family}", page)
        exec("def decide(case): return []", module.__dict__)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        made.append(Rule(name, family, module.decide))
    monkeypatch.setattr(rules, "RULES", tuple(made))


def test_all_rules_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "hang  it hangs" in lines
    assert "  file-lock-held  waits for a file lock that somebody else holds." in lines
    assert lines.index("loop  it never ends") < lines.index("  endless-epoch   it goes on.")


@pytest.mark.parametrize("words", [["file-lock-held"], ["File", "lock", "held"], ["file_lock_held"]])
def test_the_page_of_a_rule(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\n  What it sees\n" in text
    assert "long time on a file." in " ".join(text.split())
    assert "\n\n    Another paragraph.\n" in text
    assert "    Release it: `with lock:`\n" in text


def test_an_unknown_rule_brings_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "filelock-held"]) == 2
    said = capsys.readouterr().err
    assert "no rule is called filelock-held" in said
    assert "did you mean file-lock-held?" in said


def test_a_part_of_a_name_is_enough_to_be_pointed_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "lock"]) == 2
    assert "did you mean file-lock-held?" in capsys.readouterr().err


def test_messages_are_listed_after_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain"])
    lines = capsys.readouterr().out.splitlines()
    assert lines.index("loop  it never ends") < lines.index("messages  what you see on the terminal")
    assert any(line.split() == ["open-files-limit", "Too", "many", "open", "files"] for line in lines)


@pytest.mark.parametrize(
    "words", [["Too many open files"], ["too", "many", "open", "files"], ["open-files-limit"], ["Open_files", "limit"]]
)
def test_a_message(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("\nToo many open files · received 0 items of ancdata\n\n  A process has")
    assert (
        "\n  Possible causes\n    too-many-open-files  the open files are" in text
    )  # not among the two rules there are
    assert "\n  What to run\n    $ ulimit -n\n" in text


def test_a_traceback_quotes_the_line_and_lists_the_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = b"Caught OSError in DataLoader worker process 0.\n\xff\nOSError: [Errno 24] Too many open files\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said)))
    assert main(["explain", "-"]) == 0
    text = capsys.readouterr().out
    assert "OSError: [Errno 24] Too many open files\n\n  A process has" in text
    assert "Also in this text\n    worker-raised  Caught … in DataLoader worker process …\n" in text


def test_of_a_very_long_log_the_end_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = b"Killed\n" + b"step\n" * 4_000_000 + b"Hangup\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said)))
    assert main(["explain", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("\nTerminated")
    assert "Also in this text" not in out
    assert "the last 16 MB" in err


def test_an_empty_text_is_wrong_usage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    assert main(["explain", "-"]) == 2
    assert "nothing to explain" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["explain", "-"]) == 2


def test_an_unknown_message_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RuntimeError: shared memory object is broken"]) == 1
    text = capsys.readouterr().out
    assert "unstuck does not know this message" in text
    assert "\n    shared-memory-open " in text
    assert "$ unstuck run train.py" in text
    assert main(["explain", "colourless green ideas"]) == 1
    assert "Nearest" not in capsys.readouterr().out


def test_a_rule_without_a_page_is_told_by_its_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "uneven-batches"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("\nuneven-batches\n  unstuck has no rule for this cause yet.")
    assert "Watchdog caught collective operation timeout" in text


def test_a_rule_is_asked_for_by_its_name_and_a_message_by_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "too-many-open-files"])
    assert capsys.readouterr().out.startswith("\ntoo-many-open-files\n")
    main(["explain", "Hangup"])
    assert capsys.readouterr().out.startswith("\nTerminated")


def test_a_message_that_begins_with_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-- Process 0 terminated with the following error:\nTarget 7 is out of bounds."]) == 0
    assert capsys.readouterr().out.startswith("\nIndexError: Target … is out of bounds")
