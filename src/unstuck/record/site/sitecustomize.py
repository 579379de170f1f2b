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
    import importlib.util

    package = os.path.dirname(here)
    spec = importlib.util.spec_from_file_location(
        "_unstuck_record", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["_unstuck_record"] = module
    spec.loader.exec_module(module)
    from _unstuck_record import bootstrap

    bootstrap.start(os.environ["UNSTUCK_FLIGHT_DIR"], site=here)


def _give_way():
    """Run the sitecustomize that a Python without us would have run, under its own name."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _begin()
except Exception as _fault:  # recording is off; the run goes on
    if "_unstuck_record.probes" in sys.modules:
        sys.modules["_unstuck_record.probes"].off("recorder", _fault)
_give_way()
