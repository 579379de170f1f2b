"""Debian's Chromium, driven by Playwright: a page that is opened, and everything it tried to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def chromium() -> str:
    """Where it is; a test that needs it is skipped where it is not."""
    path = os.environ.get("UNSTUCK_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    pytest.importorskip("playwright", reason="needs playwright (pip install playwright)")
    return path


@contextmanager
def started() -> Iterator[Browser]:
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def visible_without_scrolling(self, selector: str) -> bool:
        box = self.page.locator(selector).first.bounding_box()
        size = self.page.viewport_size
        return bool(box and size and box["y"] >= 0 and box["y"] + box["height"] <= size["height"])


@contextmanager
def opened(
    browser: Browser, address: str, size: str = "desk", scheme: Any = "light", **options: Any
) -> Iterator[Opened]:
    """The page, with the errors and requests it made."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
    try:
        seen = Opened(context.new_page())
        seen.page.on("console", lambda m: seen.errors.append(m.text) if m.type in ("error", "warning") else None)
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("dialog", seen.refuse)
        seen.page.goto(address)
        yield seen
    finally:
        context.close()
