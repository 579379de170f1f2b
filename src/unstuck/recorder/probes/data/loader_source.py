"""Whose data a loader gives: its dataset, its samplers, and where these are written and made."""

from __future__ import annotations

import linecache
import re
from types import FunctionType

from ... import lengths, objects, user_code
from ...records.data import LoaderData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ...loading import Loading
    from ...records import Site

LIBRARIES = ("torch", "torchdata", "builtins")


def describe(loader: Any, loading: Loading, frame: FrameType | None) -> LoaderData:
    """All but what is in its data."""
    own = objects.instance_dict(loader) or {}
    dataset, batches = source(own.get("dataset")), own.get("batch_sampler")
    return LoaderData(
        loader=loading.number,
        site=loading.site,
        made=made(loader, frame),
        dataset_site=written(dataset, "__iter__" if loading.iterable else "__getitem__"),
        dataset=objects.class_name(type(dataset)),
        samples=lengths.length(own.get("dataset")),
        sampler=objects.class_name(type(own.get("sampler"))),
        own_batches=batches is not None and not _is_torchs(batches),
        own_order=not _is_torchs(own.get("sampler")),
    )


def source(dataset: Any) -> Any:
    """What a Subset, or several of them, is a part of."""
    for _ in range(8):
        inner = (objects.instance_dict(dataset) or {}).get("dataset")
        if inner is None or not _is_torchs(dataset):
            break
        dataset = inner
    return dataset


def written(thing: Any, *methods: str) -> Site | None:
    """Where the first of these methods that it has is written by the user."""
    found = next((each[1] for name in methods if (each := objects.in_class(type(thing), name)) is not None), None)
    return user_code.code_site(found) if type(found) is FunctionType else None


def calling(frame: FrameType | None) -> Site | None:
    """The innermost line of the user's."""
    while frame is not None and not user_code.is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    return user_code.absolute(frame.f_code.co_filename), frame.f_lineno, user_code.name_of(frame.f_code)


def made(loader: Any, frame: FrameType | None) -> Site | None:
    """The line that makes the loader: the one in the user's files that calls its class, or does so for its name."""
    kind = re.compile(rf"\b{re.escape(objects.class_name(type(loader)))}\(")
    here = frame
    while here is not None:
        code = here.f_code
        if user_code.is_user_file(code.co_filename):
            lines = linecache.getlines(code.co_filename)
            found = [number for number, text in enumerate(lines, 1) if kind.search(text.partition("#")[0])]
            found = [number for number in found if not lines[number - 1].lstrip().startswith(("class ", "def "))]
            if len(found) > 1:
                found = [number for number in found if _assigns(lines[number - 1], _names(loader, here))][-1:]
            if found:
                return user_code.absolute(code.co_filename), found[0], ""
        here = here.f_back
    return None


def _names(loader: Any, frame: FrameType) -> list[str]:
    local = objects.locals_of(frame) if frame.f_code.co_flags & objects.FAST == objects.FAST else {}
    return [name for names in (frame.f_globals, local) for name, value in list(names.items()) if value is loader]


def _assigns(text: str, names: list[str]) -> bool:
    left = text.partition("=")[0]
    return any(re.search(rf"\b{re.escape(name)}\b", left) for name in names)


def _is_torchs(thing: Any) -> bool:
    return objects.module_of(type(thing)).partition(".")[0] in LIBRARIES
