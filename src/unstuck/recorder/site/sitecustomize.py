"""Starts the recorder in every Python below `unstuck run`, the takeover below `unstuck scan` and `unstuck tune`; then
gives way to the sitecustomize it shadows.

This folder comes first on PYTHONPATH. The file must compile on any Python 3.
"""

import sys


def _begin():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    if sys.version_info < (3, 10) or not os.environ.get("UNSTUCK_FLIGHT_DIR"):
        return
    if os.environ.get("UNSTUCK_TAKEOVER"):
        _package("_unstuck", os.path.dirname(os.path.dirname(here)))  # without what unstuck's own __init__ would load
        from _unstuck.takeover import inside

        inside.start(os.environ["UNSTUCK_FLIGHT_DIR"])
    else:
        _package("_unstuck_recorder", os.path.dirname(here))
        from _unstuck_recorder import start

        start.start(os.environ["UNSTUCK_FLIGHT_DIR"], site=here)
        if os.environ.get("UNSTUCK_HEAL"):
            _package("_unstuck", os.path.dirname(os.path.dirname(here)))
            from _unstuck.heal.loader import heal_script
            from _unstuck_recorder import imports

            imports.when_imported("torch.utils.data.dataloader", heal_script.install)


def _package(name, folder):
    package = sys.modules[name] = type(sys)(name)  # importlib.util would cost more than all of the recorder
    package.__path__ = [folder]


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
