"""The file that `--report` names: JSON, HTML or Markdown, by its extension; written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from unstuck.errors import UsageError
from unstuck.model import Case
from unstuck.rules.diagnose import Diagnosis
from unstuck.serial import dump_text, write_whole

EXTENSIONS = (".json", ".html", ".md")


def write_report(
    path: str | os.PathLike[str],
    case: Case,
    diagnosis: Diagnosis,
    *,
    redact: bool = False,
    series: dict[str, Any] | None = None,
) -> None:
    """Raises UsageError, OSError."""
    write_whole(path, report_text(_extension(path), case, diagnosis, redact=redact, series=series))


def report_text(
    extension: str, case: Case, diagnosis: Diagnosis, *, redact: bool = False, series: dict[str, Any] | None = None
) -> str:
    if extension == ".json":
        from unstuck.report.json_report import report

        plain = report(case, diagnosis, series)
    else:
        from unstuck.report.view import view

        plain = view(case, diagnosis, series)
    if redact:
        from unstuck.report.redact import redacted

        plain = redacted(plain, case)
    if extension == ".json":
        return dump_text(plain)
    if extension == ".md":
        from unstuck.report.markdown_report import markdown

        return markdown(plain)
    from unstuck.report.html_report import html

    return html(plain)


def check_report_path(path: str | os.PathLike[str]) -> None:
    """Say before the run, not after hours of it, that the report cannot be written."""
    _extension(path)
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise UsageError(
            f"cannot write the report to {os.fspath(path)}",
            cause="it is a folder",
            next_command=f"unstuck run --report {os.path.join(path, 'report.html')} train.py",
        )
    if not os.path.isdir(folder):
        raise UsageError(
            f"cannot write the report to {os.fspath(path)}",
            cause=f"the folder {folder} does not exist",
            next_command=f"mkdir -p {folder}",
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write the report to {os.fspath(path)}",
            cause=f"no file can be created in {folder}: {error.strerror or error}",
            next_command="unstuck run --report /a/folder/of/yours/report.html train.py",
        ) from error


def _extension(path: str | os.PathLike[str]) -> str:
    stem, extension = os.path.splitext(path)
    if extension.lower() not in EXTENSIONS:
        raise UsageError(
            f"cannot write a report as {os.fspath(path)}",
            cause="the name of its file says what it is, and must end in .html, .md or .json",
            next_command=f"unstuck run --report {stem}.html train.py",
        )
    return extension.lower()
