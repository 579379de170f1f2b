"""The walk over what objects hold: paths as a person writes them, an end, and nothing of the user's is run."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

from tests.unit.recorder.untouchable import OddDict, OddList, Slotted, Untouchable, watching
from unstuck.recorder.probes.object_walk import ObjectWalk, held_by


class Holder:
    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)


def paths(thing: Any, wanted: object, **limits: Any) -> list[str]:
    walk = ObjectWalk(held_by, **{"most": 1000, **limits})
    return [path for path, part in walk.over([("", thing)]) if part is wanted]


def test_paths_are_as_a_person_writes_them() -> None:
    wanted = object()

    def closing() -> object:
        return wanted

    assert paths(Holder(rows=[0, {"a": (wanted,)}]), wanted) == [".rows[1]['a'][0]"]
    assert paths(Holder(queue=deque([wanted])), wanted) == [".queue[0]"]
    assert paths(Holder(call=partial(print, wanted)), wanted) == [".call[0]"]
    assert paths(Holder(call=Holder(inner=wanted).__init__), wanted) == [".call.__self__.inner"]  # type: ignore[misc]
    assert paths(Holder(call=closing), wanted) == [".call"]
    assert paths({("a", 1): wanted, "b" * 100: None}, wanted) == ["[…]"]


def test_each_thing_is_met_once_and_circles_end() -> None:
    circle: list[Any] = []
    circle.append(circle)
    shared = Holder()
    walk = ObjectWalk(held_by, 1000)
    assert len(list(walk.over([("", [circle, shared, {"again": shared}])]))) == 4
    assert walk.complete


def test_it_ends_by_number_depth_and_time() -> None:
    chain: list[Any] = []
    for _ in range(50):
        chain = [chain]
    for limits, most in (({"most": 10}, 10), ({"deep": 5}, 6), ({"seconds": -1.0}, 8)):
        walk = ObjectWalk(held_by, **{"most": 1000, **limits})  # type: ignore[arg-type]
        assert len(list(walk.over([("", chain)]))) <= most
        assert walk.complete is ("deep" in limits)


def test_nothing_is_run() -> None:
    odd = [Untouchable(), Slotted(), OddList([1]), OddDict(a=Untouchable()), {Untouchable(): 1}, Untouchable]
    with watching() as ran:
        assert len(list(ObjectWalk(held_by, 1000).over([("", Holder(odd=odd))]))) > len(odd)
    assert not ran
