"""Objects of which nothing may be run while they are looked at: every method notes its name, while `watching`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RAN: list[str] = []
_on = [False]


@contextmanager
def watching() -> Iterator[list[str]]:
    """Whatever of the user's is run meanwhile is in the list."""
    RAN.clear()
    _on[0] = True
    try:
        yield RAN
    finally:
        _on[0] = False


def noting(name: str, original: Any) -> Any:
    def method(*given: Any, **more: Any) -> Any:
        if _on[0]:
            RAN.append(name)
        return original(*given, **more)

    return method


class Meta(type):
    """Of a class that is itself touched by looking at it."""


for _name in ("__getattribute__", "__eq__", "__hash__", "__instancecheck__", "__subclasscheck__", "__repr__", "mro"):
    setattr(Meta, _name, noting(f"metaclass {_name}", getattr(type, _name)))
Meta.__len__ = noting("metaclass __len__", lambda _: 7)  # type: ignore[attr-defined]
Meta.__bool__ = noting("metaclass __bool__", lambda _: True)  # type: ignore[attr-defined]
Meta.__iter__ = noting("metaclass __iter__", lambda _: iter(()))  # type: ignore[attr-defined]


class Descriptor:
    def __init__(self, data: bool) -> None:
        self.__class__ = DataDescriptor if data else Descriptor

    def __get__(self, thing: Any, kind: Any = None) -> int:
        if _on[0]:
            RAN.append("descriptor")
        return 3


class DataDescriptor(Descriptor):
    def __set__(self, thing: Any, value: Any) -> None:
        raise AssertionError


ANSWERS: dict[str, Any] = {
    "__len__": lambda _: 5, "__bool__": lambda _: True, "__eq__": lambda *_: True, "__ne__": lambda *_: True,
    "__lt__": lambda *_: True, "__le__": lambda *_: True, "__gt__": lambda *_: True, "__ge__": lambda *_: True,
    "__hash__": lambda _: hash("epoch"), "__iter__": lambda _: iter((1, 2)), "__contains__": lambda *_: True,
    "__getitem__": lambda *_: 2, "__index__": lambda _: 2, "__int__": lambda _: 2, "__float__": lambda _: 2.0,
    "__str__": lambda _: "text", "__repr__": lambda _: "text", "__format__": lambda *_: "text", "__neg__": lambda _: 1,
    "__call__": lambda *_: True, "__add__": lambda *_: 2, "__radd__": lambda *_: 2, "__sub__": lambda *_: 2,
    "__mod__": lambda *_: 2, "__length_hint__": lambda _: 3, "__reversed__": lambda _: iter(()), "item": lambda _: 3.0,
    "size": lambda *_: 3, "keys": lambda _: ["epoch"], "items": lambda _: [], "__array__": lambda *_: None,
}  # fmt: skip


def attributes(**more: Any) -> dict[str, Any]:
    space = {name: noting(name, answer) for name, answer in ANSWERS.items()}
    space["__class__"] = property(noting("__class__", lambda _: int))
    space["__dict__"] = property(noting("__dict__", lambda _: {"limit": 1}))
    space["shape"] = property(noting("shape", lambda _: ()))
    space["__module__"] = "numpy"
    space["limit"], space["bound"] = Descriptor(False), Descriptor(True)
    space["computed"] = property(noting("a property", lambda _: 4))
    space["__getattribute__"] = noting("__getattribute__", object.__getattribute__)
    space["__getattr__"] = noting("__getattr__", lambda *_: 9)
    return {**space, **more}


Untouchable: Any = Meta("Untouchable", (), attributes())
Slotted: Any = Meta("Slotted", (), attributes(__slots__=("held",)))


def _subclass(base: type) -> Any:
    kept = {name: value for name, value in attributes().items() if name not in ("__dict__", "__module__")}
    return Meta(f"Odd{base.__name__}", (base,), {**kept, "__module__": __name__})


OddText, OddNumber, OddFloat, OddList, OddDict, OddTuple = map(_subclass, (str, int, float, list, dict, tuple))
