"""Operations of torch that only hand numbers on, by the kinds of their nodes. Who goes back through a graph takes the
groups that leave in place what it looks for."""

VIEWS = frozenset(("View", "UnsafeView"))
SHAPES = VIEWS | {"Squeeze", "Unsqueeze", "T", "Transpose"}  # the same numbers in another shape
PICKS = frozenset(("Permute", "Select", "Slice"))  # in another order, or a part
COPIES = frozenset(("Reshape", "Expand", "Clone"))  # where it must, or several times
