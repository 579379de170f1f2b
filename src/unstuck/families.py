"""The families of findings. A module of its own: the supervisor needs no rule to know them."""

from __future__ import annotations

FAMILIES = {
    "hang": "it hangs",
    "loop": "it never ends",
    "death": "it died",
    "pace": "it crawls",
    "numerics": "NaN, exploding or vanishing numbers",
    "learning": "it does not learn",
    "data": "something is wrong with the data",
    "ranks": "several ranks",
}
STANDING = frozenset(("hang", "ranks"))  # nothing moves: withdrawn once it does
NOT_LEARNING = frozenset(("numerics", "learning"))  # about loss, gradients and updates; they share their last resorts
IN_VAIN = NOT_LEARNING | {"data"}  # the run goes on, but to no use
