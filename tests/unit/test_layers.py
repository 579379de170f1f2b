"""The layers: what each package may import. Data flows one way, so imports do too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import unstuck

ROOT = Path(unstuck.__file__).parent
LAYERS = (  # a package may import what stands before it, and itself
    ("version", "errors", "text", "families", "recorder", "demos"),
    ("model", "heal", "platforms"),
    ("serial",),
    ("observer",),
    ("rules",),
    ("report",),
    ("explain",),
    ("supervise",),
    ("takeover",),
    ("scanning", "tuning"),
    ("said", "notebook"),
    ("attach", "api"),
    ("cli", "pytest_plugin", "__init__"),
    ("__main__",),
)
OPEN = ("layout", "records", "cores")
"""What of the recorder may be used outside; the rest runs inside the training only."""
INSIDE = ("api", "notebook", "pytest_plugin", "takeover", "scanning", "tuning")
"""These run in the training's process themselves."""
OUTSIDE = ("script", "scan_result", "tune_page", "edit")
"""Of the packages that are injected into a script: what stays outside."""
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in ROOT.rglob("*.py") if "site" not in path.parent.name)


def imports(path: Path) -> list[str]:
    """Full names of all that a module imports of ours."""
    here = ("unstuck", *path.relative_to(ROOT).with_suffix("").parts)
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: -node.level] if node.level else ()
            source = ".".join((*base, *([node.module] if node.module else [])))
            found += [f"{source}.{alias.name}" for alias in node.names]
    return [name for name in found if name.startswith("unstuck.")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for name in imports(path):
        other = name.split(".")[1]
        assert other == own or HEIGHT[other] < HEIGHT[own], f"{own} imports {name}"
        if other == "recorder" != own and own not in INSIDE:
            assert name.split(".")[2] in OPEN, f"{own} imports {name}"


def test_every_package_has_its_layer() -> None:
    there = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    assert there == set(HEIGHT)


def test_torch_s_private_names_are_known_to_hooks_only() -> None:
    """But for what saved tensors of a graph are called, and torch's own switches."""
    for path in (ROOT / "recorder").rglob("*.py"):
        if path.parent.name in ("hooks", "site"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
                assert not any(part.startswith("_") for part in (node.module or "").split(".")), path


@pytest.mark.parametrize("package", ["recorder", "heal/loader", "takeover", "scanning", "tuning"])
def test_what_is_injected_needs_no_installed_unstuck(package: str) -> None:
    """There it has another name: `_unstuck`."""
    for path in (ROOT / package).rglob("*.py"):
        if path.stem in OUTSIDE:
            continue
        for node in ast.parse(path.read_text()).body:
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            assert not any(name.partition(".")[0] == "unstuck" for name in modules), path
