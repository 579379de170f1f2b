"""The page in a real browser: one for each family and of a real run, on a desk and a phone, light and dark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.browser import SIZES, opened, started
from tests.conftest import Runner
from tests.corpus import FAULTY
from tests.unit.rules.record_cases import CASES, saved_case
from unstuck.families import FAMILIES
from unstuck.model import Case, Finding, Fix, Flight, Frame, Look, Process, Thread, Where
from unstuck.recorder.records.learning import Learning, Loss, Parameter
from unstuck.report.report_file import write_report
from unstuck.rules.diagnose import Diagnosis, diagnose

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Scheme = Literal["light", "dark"]

MAX_BYTES = 400_000
NAMES = sorted(path.name.removesuffix(".json.gz") for path in CASES.glob("*.json.gz"))
ONE_EACH = {family: next(name for name in NAMES if FAULTY[name].family == family) for family in FAMILIES}
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"' onmouseover='alert(3)",
    "{{ 7 * 7 }}{% raw %}",
    "a\u2028b\u202ec\x00\x1b[31m",
    "bytes \udcff\udce9 that are no UTF-8",
    "🦆" * 60,
    "long" * 2000,
    "javascript:alert(4)",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as running:
        yield running


def looks_right(browser: Browser, file: Path, title: str, *, schemes: tuple[Scheme, ...] = ("light", "dark")) -> None:
    assert file.stat().st_size < MAX_BYTES
    with opened(browser, file.as_uri()) as seen:
        for size, (width, height) in SIZES.items():
            for scheme in schemes:
                seen.page.set_viewport_size({"width": width, "height": height})
                seen.page.emulate_media(color_scheme=scheme)
                assert seen.page.locator("h1").inner_text().replace("\u00a0", " ") == title.replace("`", "")
                assert seen.visible_without_scrolling("h1")
                wide = seen.page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"it is {wide} pixels too wide for the {size}"
        assert seen.errors == []
        assert seen.requests == [file.as_uri()]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_page_of_each_family(browser: Browser, tmp_path: Path, family: str) -> None:
    case = saved_case(ONE_EACH[family])
    diagnosis = diagnose(case)
    write_report(tmp_path / "r.html", case, diagnosis)
    looks_right(browser, tmp_path / "r.html", diagnosis.findings[0].title)


def test_what_was_measured_is_drawn(browser: Browser, tmp_path: Path) -> None:
    case = saved_case("decay-eats-weights")
    write_report(tmp_path / "r.html", case, diagnose(case))
    with opened(browser, (tmp_path / "r.html").as_uri()) as seen:
        headings = [heading.strip() for heading in seen.page.locator(".plot h3").all_inner_texts()]
        for wanted in (
            "Loss",
            "Gradient norm",
            "Learning rate",
            "Update ratio",
            "Resident memory",
            "Seconds of each step",
        ):
            assert any(heading.startswith(wanted) for heading in headings), wanted
        plot = seen.page.locator(".u-over").first
        plot.scroll_into_view_if_needed()
        plot.hover(position={"x": 200, "y": 60})
        legend = seen.page.locator(".u-legend").first
        at_first = legend.inner_text()
        box = plot.bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + 100, box["y"] + 40)
        assert legend.inner_text() != at_first, "the legend follows the pointer"
        before = _painted(seen.page)
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + 180, box["y"] + 40)
        seen.page.mouse.up()
        assert _painted(seen.page) != before, "dragging zooms"
        assert seen.errors == []


def _painted(page: Any) -> str:
    return str(page.evaluate("document.querySelector('.u-wrap canvas').toDataURL()"))


def test_a_healthy_run_gets_a_page(browser: Browser, tmp_path: Path) -> None:
    case = replace(saved_case("decay-eats-weights"), outcome="finished", stalls=(), exits=())
    write_report(tmp_path / "r.html", case, Diagnosis())
    looks_right(browser, tmp_path / "r.html", "Nothing wrong was found in this run.", schemes=("light",))
    with opened(browser, (tmp_path / "r.html").as_uri()) as seen:
        text = seen.page.locator("main").inner_text()
        assert "What was ruled out" in text
        assert "331" in text  # steps


def test_an_empty_case_gets_a_page(browser: Browser, tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", Case(), Diagnosis())
    looks_right(browser, tmp_path / "r.html", "Nothing wrong was found so far.", schemes=("dark",))


def hostile_case(name: str) -> tuple[Case, Diagnosis]:
    frame = Frame(name, 1, name, code=name, user=True)
    thread = Thread(1, name=name, frames=(frame,))
    finding = Finding(
        rule="file-lock-held",
        family="hang",
        severity="error",
        confidence=0.9,
        title=name,
        evidence=(name, f"`{name}`"),
        where=Where(name, 1, name, 1, 0, 0, name, 3),
        fix=Fix(name, f"- {name}\n+ {name}"),
        seen_by="kernel",
        consequences=(name,),
        also=(Where(name, 2, name),),
    )
    learning = Learning(
        pid=1,
        steps=9,
        losses=[Loss(site=(name, 1, name), points=[(n, 1.0 / (n + 1)) for n in range(9)], count=9)],
        parameters=[Parameter(name=name, grads=[(1, 1.0), (2, 2.0)], moves=[(1, 1.0)], weights=[2.0])],
    )
    case = Case(
        command=("python", name, name),
        cwd="/nowhere",
        now=100.0,
        seconds=50.0,
        root=1,
        looks=(Look(1.0, (Process(1, threads=(thread,)),), stacks=True),),
        flights=(
            Flight(1, role="main", step=9),
            Flight(2, role="worker", worker=0, fetching=True, sample_key=name, sample_since=60.0),
        ),
        learnings=(learning,),
        probes_off=((name, name),),
        machine={name: name},
    )
    withdrawn = replace(finding, withdrawn=True)
    return case, Diagnosis((finding, replace(finding, severity="warning"), withdrawn))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_inert(browser: Browser, tmp_path: Path, name: str) -> None:
    case, diagnosis = hostile_case(name)
    for extension in ("html", "md", "json"):
        write_report(tmp_path / f"r.{extension}", case, diagnosis)
    (tmp_path / "r.md").read_text(encoding="utf-8")
    json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    file = tmp_path / "r.html"
    assert file.stat().st_size < MAX_BYTES
    with opened(browser, file.as_uri(), "phone") as seen:
        assert seen.errors == []
        assert seen.requests == [file.as_uri()]
        assert seen.page.locator("script").count() == 3
        assert seen.page.locator("main img, main script, main [onmouseover], main a").count() == 0
        assert seen.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert seen.page.locator(".plot").count() >= 2, "it is drawn all the same"


def test_markdown_is_copied(browser: Browser, tmp_path: Path) -> None:
    case = saved_case(ONE_EACH["hang"])
    diagnosis = diagnose(case)
    write_report(tmp_path / "r.html", case, diagnosis)
    rights = ["clipboard-read", "clipboard-write"]
    with opened(browser, (tmp_path / "r.html").as_uri(), permissions=rights) as seen:
        seen.page.locator("#copy").click()
        seen.page.wait_for_function("document.getElementById('copy').textContent === 'Copied'")
        copied = seen.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("## ")
    assert diagnosis.findings[0].rule in copied
    assert diagnosis.findings[0].fix.text.split("`")[0] in copied


def test_a_real_run(browser: Browser, unstuck: Runner) -> None:
    """A stuck worker: its timeline shows the batches before, and where it stands."""
    page, data = unstuck.folder / "why.html", unstuck.folder / "why.json"
    script = Path(sys.modules["unstuck"].__path__[0]) / "demos" / "stuck_sample.py"
    flags = ("--on-hang", "stop", "--stall-after", "3", "--grace", "2")
    process = unstuck.start("run", *flags, "--report", page, script)
    assert process.wait(90) == 3
    looks_right(browser, page, _title(unstuck, data), schemes=("dark",))
    report = json.loads(data.read_text())
    workers = report["series"]["workers"]
    assert any(worker["seconds"] for worker in workers)
    assert [worker["now"]["sample"] for worker in workers if worker["now"]] == [
        report["findings"][0]["where"]["sample"]
    ]
    with opened(browser, page.as_uri()) as seen:
        assert seen.page.locator("#timeline canvas").count() == 1
        assert seen.page.locator(".line.marked").count() >= 1
        assert seen.page.locator(".line:not(.marked)").count() >= 3, "the source around it"


def _title(unstuck: Runner, data: Path) -> str:
    assert unstuck.start("report", "-o", data).wait(60) == 0
    return str(json.loads(data.read_text())["findings"][0]["title"])
