"""First on PYTHONPATH: every optimizer that a script makes is guarded, and the script itself is as it was."""

import importlib.abc
import importlib.machinery
import os
import sys


class AfterOptimizers(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, _=None):
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            guard_all(module.Optimizer)

        spec.loader.exec_module = exec_module
        return spec


def guard_all(optimizers):
    original = optimizers.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        import unstuck

        unstuck.guard(self)
        with open(os.environ["GUARDED"], "a") as file:
            file.write(f"{type(self).__name__}\n")

    optimizers.__init__ = __init__


sys.meta_path.insert(0, AfterOptimizers())
