"""Which library writes the loop, and what it calls the present moment: its epoch, its global step, its metrics.

Nothing of the library's is hooked or called. Its frames are on the stack of the training anyway, and the object that
drives the loop is the `self` of one of them; what that holds is read as all attributes are.
"""

from __future__ import annotations

import importlib
import sys
from types import FrameType, ModuleType
from typing import Any

from ... import flight, journal, objects, user_code
from ...loading import Loading
from ...probe import Probe, is_due
from ...records.loops import LibraryLoop, LibraryName

READERS: dict[str, LibraryName] = {  # module whose frames are looked for: the file here that knows its objects
    "lightning.pytorch.trainer.trainer": "lightning",
    "pytorch_lightning.trainer.trainer": "lightning",
    "transformers.trainer": "transformers",
    "accelerate.accelerator": "accelerate",
    "accelerate.data_loader": "accelerate",
    "ignite.engine.engine": "ignite",
    "fastai.learner": "fastai",
}
MOST_PASSES = 256  # that are each written down, for the epoch of a step; a loader has no more in most trainings
MOST_METRICS = 12  # names


class LibraryLoops(Probe):
    """Hears where a pass begins, for the epochs, and of sampled backward passes, for the steps."""

    name = "frameworks"

    def forget(self) -> None:
        self._passes = self._backwards = 0

    def pass_began(self, loading: Loading, iterator: Any) -> None:
        self._passes += 1
        if self._passes <= MOST_PASSES or is_due(self._passes):
            self._note(sys._getframe())

    def before_backward(self, root: Any, frame: FrameType) -> None:
        self._backwards += 1
        if is_due(self._backwards):
            self._note(frame)

    def _note(self, frame: FrameType) -> None:
        files = {file: reader for module, reader in READERS.items() if (file := _file_of(module))}
        if not files:
            return
        stack = ((files.get(each.f_code.co_filename), each) for each in user_code.frames(frame))
        on_stack = [(reader, each) for reader, each in stack if reader is not None]
        if not on_stack:
            return
        library = on_stack[-1][0]  # the outermost: a Trainer may itself train with another library
        module = importlib.import_module(f"{__package__}.{library}")
        drivers = [own for reader, each in on_stack if reader == library and (own := _self_of(each)) is not None]
        state: dict[str, Any] = module.read(drivers[::-1]) if drivers else {}
        state["metrics"] = list(dict.fromkeys(state.get("metrics", ())))[:MOST_METRICS]
        journal.write(LibraryLoop(library=library, version=_version(module.PACKAGES), step=flight.steps(), **state))


def _file_of(module: str) -> str:
    known = objects.module_dict(sys.modules.get(module)) or {}
    file = known.get("__file__")
    return file if type(file) is str else ""


def _self_of(frame: FrameType) -> Any:
    code = frame.f_code
    if not code.co_argcount or code.co_varnames[0] != "self":
        return None
    return objects.locals_of(frame).get("self")


def _version(packages: tuple[str, ...]) -> str:
    modules: list[ModuleType] = [sys.modules[name] for name in packages if name in sys.modules]
    found = [(objects.module_dict(module) or {}).get("__version__") for module in modules]
    return next((version for version in found if type(version) is str), "")


def held(thing: Any, path: str) -> Any:
    """`state.global_step` of an object, step by step; None where one cannot be read without running something."""
    for name in path.split("."):
        thing = objects.attribute(thing, name)
        if thing is objects.UNKNOWN:
            return None
    return thing


def number(thing: Any, path: str) -> int | None:
    found = held(thing, path)
    return found if type(found) is int else None


def names(thing: Any) -> list[str]:
    """The keys of a dict, as far as they are text."""
    if not issubclass(type(thing), dict):
        return []
    return [key for key, _ in objects.some_of(dict.items(thing), MOST_METRICS * 4) if type(key) is str]
