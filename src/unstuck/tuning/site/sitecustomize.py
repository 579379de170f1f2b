"""Starts the takeover in every Python below `unstuck tune`, then gives way to the sitecustomize it shadows.

This folder comes first on PYTHONPATH. The file must compile on any Python 3.
"""

import sys


def _begin():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    if sys.version_info < (3, 10) or not os.environ.get("UNSTUCK_TUNE_DIR"):
        return
    package = type(sys)("_unstuck")  # the folder of unstuck itself, without what its __init__ would load
    package.__path__ = [os.path.dirname(os.path.dirname(here))]
    sys.modules["_unstuck"] = package
    from _unstuck.tuning import takeover

    takeover.start(os.environ["UNSTUCK_TUNE_DIR"])


def _give_way():
    """Import the sitecustomize that a Python without us would have: our folder is off sys.path by now."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


try:
    _begin()
except Exception as _fault:
    sys.stderr.write("unstuck: the script cannot be tuned: %s: %s\n" % (type(_fault).__name__, _fault))
_give_way()
