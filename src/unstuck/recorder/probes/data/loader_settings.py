"""How a loader is set, and where the user's own parts of it are written: read, nothing of them is run."""

from __future__ import annotations

from ... import lengths, objects, user_code
from ...records.loaders import LoaderSettings
from .sample_code import asks_its_worker, method_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...loading import Loading
    from ...records import Site

_name = type.__dict__["__qualname__"].__get__  # a metaclass is not asked


def read(loading: Loading, loader: Any) -> LoaderSettings:
    own = objects.instance_dict(loader) or {}
    dataset, prepares = own.get("dataset"), own.get("worker_init_fn")
    drawn = lengths.drawing(loader)
    samplers = (drawn, (objects.instance_dict(drawn) or {}).get("sampler"), own.get("sampler"))
    drawn_at = [_written(each, "__iter__") for each in samplers if each is not None]
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
        num_workers=_whole(own.get("num_workers")) or 0,
        drop_last=_is_set(own.get("drop_last")),
        pin_memory=_is_set(own.get("pin_memory")),
        prefetch_factor=_whole(own.get("prefetch_factor")),
        timeout=timeout if type(timeout) is float else float(_whole(timeout) or 0),
        persistent_workers=_is_set(own.get("persistent_workers")),
        in_order=own.get("in_order") is not False,
        dataset=_name(type(dataset)),
        sampler=_name(type(own.get("sampler"))),
        start_method=method[1] if method is not None and type(method[1]) is str else "",
        samples=lengths.length(dataset),
        sampler_site=next((site for site in drawn_at if site), None),
        dataset_site=_written(dataset, "__iter__" if loading.iterable else "__getitem__"),
        asks_worker=splits or prepares is not None,
        splits=splits,
    )


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _is_set(value: Any) -> bool:
    return value is True or bool(_whole(value))


def _written(thing: Any, name: str) -> Site | None:
    """Where the class of a thing has a method, if in the user's code."""
    method = method_of(type(thing), name)
    return None if method is None else user_code.code_site(method)
