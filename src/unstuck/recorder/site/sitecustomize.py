"""Starts the recorder in every Python below `unstuck run`, then gives way to the sitecustomize it shadows.

This folder comes first on PYTHONPATH. The file must compile on any Python 3.
"""

import sys


def _begin():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    if sys.version_info < (3, 10) or not os.environ.get("UNSTUCK_FLIGHT_DIR"):
        return
    package = type(sys)("_unstuck_recorder")  # importlib.util would cost more than all of the recorder
    package.__path__ = [os.path.dirname(here)]
    sys.modules["_unstuck_recorder"] = package
    from _unstuck_recorder import start

    start.start(os.environ["UNSTUCK_FLIGHT_DIR"], site=here)


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
except Exception as _fault:  # recording is off; the run goes on
    if "_unstuck_recorder.guard" in sys.modules:
        sys.modules["_unstuck_recorder.guard"].off("recorder", _fault)
_give_way()
