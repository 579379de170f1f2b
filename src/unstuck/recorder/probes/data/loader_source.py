"""What a loader is: how it is set, its dataset and samplers, and where these are written and made. Nothing is run."""

from __future__ import annotations

import linecache
import re
from types import FrameType, MethodType
from typing import Any

from ... import lengths, objects, user_code
from ...loading import Loading
from ...records import Site
from ...records.data import LoaderData
from ...records.loaders import LoaderSettings
from .sample_code import asks_its_worker, method_of, package_of

LIBRARIES = ("torch", "torchdata", "builtins")
MOST_WRAPPERS = 8  # Subsets of Subsets
_qualname = type.__dict__["__qualname__"].__get__  # a metaclass is not asked


def settings(loading: Loading, loader: Any) -> LoaderSettings:
    """How it is set."""
    own = objects.Own(loader)
    dataset, prepares = dataset_of(loader), own.get("worker_init_fn")
    drawn = lengths.drawing(loader)
    samplers = (drawn, objects.Own(drawn).get("sampler"), own.get("sampler"))
    drawn_at = [written(sampler, "__iter__") for sampler in samplers if sampler is not None]
    method = objects.in_class(type(own.get("_DataLoader__multiprocessing_context")), "_name")
    timeout = own.get("timeout")
    splits = asks_its_worker(dataset, prepares)
    return LoaderSettings(
        number=loading.number,
        loader=id(loader),
        site=loading.site,
        length=loading.length,
        iterable=loading.iterable,
        batch_size=_whole(own.get("batch_size")),
        num_workers=loading.workers,
        drop_last=_is_set(own.get("drop_last")),
        pin_memory=_is_set(own.get("pin_memory")),
        prefetch_factor=_whole(own.get("prefetch_factor")),
        timeout=timeout if type(timeout) is float else float(_whole(timeout) or 0),
        persistent_workers=_is_set(own.get("persistent_workers")),
        in_order=own.get("in_order") is not False,
        dataset=_qualname(type(dataset)),
        sampler=_qualname(type(own.get("sampler"))),
        start_method=method[1] if method is not None and type(method[1]) is str else "",
        samples=lengths.length(dataset),
        sampler_site=next((site for site in drawn_at if site), None),
        dataset_site=(None if loading.iterable else written(dataset, "__getitem__")) or written(dataset, "__iter__"),
        asks_worker=splits or prepares is not None,
        splits=splits,
    )


def dataset_of(loader: Any) -> Any:
    """Its dataset; of torchdata's nodes what they draw from, or what a method of maps their items."""
    parts = lengths.parts(loader)
    if "dataset" in parts[0]:
        return parts[0]["dataset"]
    held = [value for part in reversed(parts) for value in (part.get("iterable"), part.get("map_fn"))]
    things = [value.__self__ if type(value) is MethodType else value for value in held]
    return next((thing for thing in things if written(thing, "__getitem__") or written(thing, "__iter__")), None)


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _is_set(value: Any) -> bool:
    return value is True or bool(_whole(value))


def describe(loader: Any, loading: Loading, frame: FrameType | None) -> LoaderData:
    """All but what is in its data."""
    own = objects.Own(loader)
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
    for _ in range(MOST_WRAPPERS):
        inner = objects.Own(dataset).get("dataset")
        if inner is None or not _is_torchs(dataset):
            break
        dataset = inner
    return dataset


def written(thing: Any, *methods: str) -> Site | None:
    """Where the first of these methods that it has is written by the user."""
    found = next((method for name in methods if (method := method_of(type(thing), name)) is not None), None)
    return None if found is None else user_code.code_site(found)


def made(loader: Any, frame: FrameType | None) -> Site | None:
    """The line that makes the loader: the one in the user's files that calls its class, or does so for its name."""
    call = re.compile(rf"\b{re.escape(objects.class_name(type(loader)))}\(")
    for caller in user_code.frames(frame):
        file = caller.f_code.co_filename
        if not user_code.is_user_file(file):
            continue
        lines = [(number, text.partition("#")[0]) for number, text in enumerate(linecache.getlines(file), 1)]
        calls = [
            (n, text) for n, text in lines if call.search(text) and not text.lstrip().startswith(("class ", "def "))
        ]
        if len(calls) > 1:
            names = _names(loader, caller)
            calls = [(number, text) for number, text in calls if _assigns(text, names)][-1:]
        if calls:
            return user_code.absolute(file), calls[0][0], ""
    return None


def _names(loader: Any, frame: FrameType) -> list[str]:
    local = objects.locals_of(frame) if frame.f_code.co_flags & objects.FAST == objects.FAST else {}
    return [name for names in (frame.f_globals, local) for name, value in list(names.items()) if value is loader]


def _assigns(text: str, names: list[str]) -> bool:
    left = text.partition("=")[0]
    return any(re.search(rf"\b{re.escape(name)}\b", left) for name in names)


def _is_torchs(thing: Any) -> bool:
    return package_of(type(thing)) in LIBRARIES
