"""A person at a terminal: a shell in tmux that can be typed at and read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPT = "ready>"
LIMIT = 90.0


class Terminal:
    """One shell in a tmux server of its own, gone with all it runs when closed."""

    def __init__(self, folder: Path, env: dict[str, str] | None = None, columns: int = 120) -> None:
        self.sockets = tempfile.mkdtemp(prefix="terminal-", dir="/tmp")  # paths of sockets must be short
        self.env = {
            **{name: value for name, value in os.environ.items() if name not in ("TMUX", "NO_COLOR")},
            "TMUX_TMPDIR": self.sockets,
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "UNSTUCK_TEST_MARK": str(folder),
            **(env or {}),
        }
        self.unstuck = f"{sys.executable} -m unstuck run --python {sys.executable} --report report.json"
        start = Path(self.sockets) / "start"
        start.write_text(f"PS1='{PROMPT} '\n")
        shell = f"exec bash --noprofile --rcfile {start} -i"
        try:
            self._tmux("new-session", "-d", "-x", str(columns), "-y", "45", "-c", str(folder), shell)
            self.wait_for(rf"^{PROMPT}")
        except BaseException:
            self.close()
            raise

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-L", "test", "-f", "/dev/null", *words]
        with tempfile.TemporaryFile() as said:  # no pipe: the server would keep it open
            done = subprocess.run(command, env=self.env, stdout=said, stderr=said, timeout=LIMIT)
            said.seek(0)
            text = said.read().decode()
        assert done.returncode == 0, text
        return text

    def screen(self) -> str:
        """All that was printed, as it looks now; lines that wrapped are joined."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-").rstrip()

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self.press("Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def wait_for(self, pattern: str, limit: float = LIMIT) -> str:
        """The screen, once the pattern is on it."""
        deadline = time.monotonic() + limit
        while True:
            screen = self.screen()
            if re.search(pattern, screen, re.MULTILINE):
                return screen
            assert time.monotonic() < deadline, f"no {pattern!r} on the screen:\n{screen}"
            time.sleep(0.1)

    def wait_for_prompt(self, limit: float = LIMIT) -> str:
        """The screen, once the shell asks again at its end."""
        return self.wait_for(rf"^{PROMPT}\Z", limit)

    def status(self) -> int:
        """Exit status of the last command."""
        self.wait_for_prompt()
        self.type('echo "status=$?."')
        said = re.findall(r"^status=(\d+)\.$", self.wait_for(r"^status=\d+\.$"), re.MULTILINE)
        return int(said[-1])

    def close(self) -> None:
        quiet = subprocess.DEVNULL
        subprocess.run(["tmux", "-L", "test", "kill-server"], env=self.env, stdout=quiet, stderr=quiet, timeout=LIMIT)
        shutil.rmtree(self.sockets, ignore_errors=True)
