"""Everything the recorder can say, as plain typed data: one module a family, loaded when first needed.

Probes make records, `journal` writes them as JSON lines, the Case carries them, rules read their fields. Standard
library only: these modules are injected with the recorder.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import Field
    from typing import Any, ClassVar

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls


Site = tuple[str, int, str]  # file, line and function of a line in the user's code


class _DataclassFields:
    """Makes `dataclasses.replace` and `fields` work on a Struct; what they need is made at their first use."""

    def __init__(self) -> None:
        self._made: dict[type, dict[str, Field[Any]]] = {}

    def __get__(self, instance: object, owner: type[Struct]) -> dict[str, Field[Any]]:
        if owner not in self._made:
            from dataclasses import make_dataclass

            # Without methods: they are made by exec, after which Python exits with 1 where it should die of Ctrl-C.
            made: Any = make_dataclass(owner.__name__, owner.FIELDS, init=False, repr=False, eq=False)
            self._made[owner] = made.__dataclass_fields__
        return self._made[owner]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Struct:
    """Typed data: a subclass lists its fields. A default of [], {} or Struct() is made anew for each instance.

    Like a frozen dataclass to the type checker. At run time all subclasses share one constructor: generating one for
    each, as dataclasses do, takes milliseconds of the user's start.
    """

    if TYPE_CHECKING:
        FIELDS: ClassVar[tuple[str, ...]]
    else:
        FIELDS = ()
        __dataclass_fields__ = _DataclassFields()

        def __init_subclass__(cls):
            cls.FIELDS = tuple(dict.fromkeys((*cls.FIELDS, *cls.__annotations__)))
            defaults = {name: getattr(cls, name) for name in cls.FIELDS if hasattr(cls, name)}
            cls._known = frozenset(cls.FIELDS)
            cls._required = cls._known - defaults.keys()
            cls._fresh = {
                name: type(default) for name, default in defaults.items() if isinstance(default, (list, dict, Struct))
            }

        def __init__(self, **values):
            wrong = (self._required - values.keys()) | (values.keys() - self._known)
            if wrong:
                raise TypeError(f"{type(self).__name__}: missing or unknown: {', '.join(sorted(wrong))}")
            own = self.__dict__
            for name, make in self._fresh.items():
                if name not in values:
                    own[name] = make()
            own.update(values)


class Record(Struct):
    """One thing a process said. `pid` and `at` are put there when it is written."""

    pid: int = 0
    at: float = 0.0


class ProbeOff(Record):
    """An internal error: this part of the recorder is off from here on."""

    probe: str
    why: str = ""
