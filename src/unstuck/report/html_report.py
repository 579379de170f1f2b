"""The HTML page: one file that needs nothing else, and in which nothing of the run can act."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unstuck.report.markdown_report import markdown

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# Turn text around, hide it, or end a line in a script: written out instead.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_CODE = re.compile(r"`([^`\n]+)`")
_AMOUNT = re.compile(r"(?<=\d) (?=(?:%|µs|ms|s|min|h|KB|MB|GB)\b|%)")  # no line break between number and unit


def html(view: dict[str, Any], *, live: bool = False) -> str:
    """The whole page; `live`: it listens for changes at its own address."""
    shown = _visible(view)
    scripts = [_asset("vendor/uplot/uPlot.iife.min.js"), _asset("templates/page.js")]
    page = _environment().get_template("page.html")
    return page.render(
        shown,
        title=_title(shown),
        live=live,
        data=_data(shown),
        styles=_asset("vendor/uplot/uPlot.min.css") + _asset("templates/page.css"),
        scripts=scripts,
        allowed=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
    )


def live_change(view: dict[str, Any]) -> dict[str, str]:
    """What a live page replaces: its contents, its data, its title."""
    shown = _visible(view)
    main = _environment().get_template("main.html").render(shown, live=True)
    return {"main": main, "data": _data(shown), "title": _title(shown), "tone": shown["verdict"]["tone"]}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("unstuck.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = _prose
    return environment


@cache
def _asset(name: str) -> str:
    return files("unstuck.report").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _title(view: dict[str, Any]) -> str:
    return f"{view['verdict']['title'][:80]} · {view['program']}"


def _data(view: dict[str, Any]) -> str:
    """What the drawings need, as JSON that no HTML parser takes for markup."""
    plain = {"series": view["series"], "marks": view["marks"], "markdown": markdown(view)}
    text = json.dumps(plain, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _visible(plain: Any) -> Any:
    if isinstance(plain, str):
        return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)
    if isinstance(plain, dict):
        return {_visible(key): _visible(value) for key, value in plain.items()}
    return [_visible(item) for item in plain] if isinstance(plain, list) else plain


def _prose(text: str) -> Markup:
    """`code` in a sentence as code; amounts unbroken."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", _AMOUNT.sub("\u00a0", str(escape(text)))))
