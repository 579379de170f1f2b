"""Takes docs/img/: pictures of the HTML reports of two real runs, in Debian's Chromium. Needs the dev extra.

python docs/take_pictures.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
PICTURES = {  # name: script, options of `run`, height and scale of the picture
    "report-hang": (ROOT / "src/unstuck/demos/stuck_sample.py", ("--on-hang", "stop"), 800, 1.2),
    "report-learning": (ROOT / "tests/faults/faulty/step-decay-at-every-batch.py", ("--stop-on", "error"), 1180, 1.0),
}
WIDTH = 1280
MAX_BYTES = 200_000


def report_of(script: Path, options: tuple[str, ...], folder: Path) -> Path:
    shutil.copy(script, folder)  # as somebody's own script, in their own folder
    page = folder / "report.html"
    command = [sys.executable, "-m", "unstuck", "run", *options, "--report", str(page), script.name]
    subprocess.run(command, cwd=folder, check=False, timeout=300)
    return page


def main() -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for name, (script, options, height, scale) in PICTURES.items():
            folder = Path(place) / name
            folder.mkdir()
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, device_scale_factor=scale)
            page.goto(report_of(script, options, folder).as_uri())
            page.wait_for_timeout(500)
            picture = Path(__file__).parent / "img" / f"{name}.png"
            page.screenshot(path=picture)
            size = picture.stat().st_size
            print(f"{picture}: {size:,} bytes")
            assert size < MAX_BYTES, "too large to be loaded with a README"
        browser.close()


if __name__ == "__main__":
    main()
