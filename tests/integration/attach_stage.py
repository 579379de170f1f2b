"""For tests of `unstuck attach`: ask as a person would, as another user, without rights, with another py-spy."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import unstuck
from unstuck.observer import proc

LIMIT = 90
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
NO_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
"""Root keeps its name, and may not look into what has more rights than itself."""
OWN_PIDS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
SLEEPER = """
    import time
    print("ready", flush=True)
    time.sleep(600)
"""


def _works(*command: str) -> bool:
    if os.geteuid() != 0 or not shutil.which(command[0]):
        return False
    return subprocess.run([*command, sys.executable, "-c", "import unstuck"], capture_output=True).returncode == 0


needs_nobody = pytest.mark.skipif(not _works(*NOBODY), reason="needs root, setpriv, and code that all may read")
needs_setpriv = pytest.mark.skipif(not _works(*NO_PTRACE), reason="needs root and setpriv")
needs_namespace = pytest.mark.skipif(not _works(*OWN_PIDS), reason="needs root and pid namespaces")


@dataclass(frozen=True)
class Said:
    """What one `unstuck attach` said."""

    code: int
    out: str
    err: str

    @property
    def plain(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.out)
        return told

    @property
    def flat(self) -> str:
        """All of it, not wrapped."""
        return " ".join(f"{self.out} {self.err}".split())


def ask(*words: object, prefix: tuple[str, ...] = (), python: str = sys.executable, **options: Any) -> Said:
    """`PREFIX python -m unstuck attach WORDS…`; never a traceback, whatever was asked."""
    told = subprocess.run(
        [*prefix, python, "-m", "unstuck", "attach", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        start_new_session=True,
        **options,
    )
    said = Said(told.returncode, told.stdout.decode(), told.stderr.decode())
    assert "Traceback" not in said.out + said.err, said
    return said


def first_line(process: subprocess.Popen[bytes]) -> str:
    """What it prints when it is ready."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def unharmed(pid: int) -> bool:
    stat = proc.stat(pid)
    return stat is not None and stat.state not in "ZXTt"


def python_without_py_spy(folder: Path, instead: str = "") -> tuple[str, dict[str, str]]:
    """An environment beside ours that has all but py-spy, and the variables to run it with. `instead`: a script."""
    home = folder / "bare"
    (home / "bin").mkdir(parents=True)
    base = Path(os.path.realpath(sys.executable))
    (home / "bin" / "python").symlink_to(base)
    (home / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    packages = home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    source = Path(unstuck.__file__).parent.parent
    (packages / "ours.pth").write_text("\n".join([*site.getsitepackages(), str(source)]))
    if instead:
        fake = home / "bin" / "py-spy"
        fake.write_text(textwrap.dedent(instead).lstrip())
        fake.chmod(0o755)
    return str(home / "bin" / "python"), {**os.environ, "PATH": "/usr/bin:/bin"}
