"""Our own faults: caught where they happen, noted once, and the probe is switched off for good."""

import sys

OFF: "dict[str, str]" = {}
_removers: "dict[str, object]" = {}


def on(name, remove):
    """Register a probe and how to take it out again."""
    _removers[name] = remove


def off(name, fault):
    """Switch a probe off because of `fault`; says so once, in the facts, or where these fail in the flight file."""
    if name in OFF:
        return
    OFF[name] = "%s: %s" % (type(fault).__name__, fault)
    remove = _removers.pop(name, None)
    try:
        if remove is not None:
            remove()
    except Exception as second:
        OFF[name] += " (and it could not be removed: %s)" % second
    _tell(name, OFF[name])


def _tell(name, why):
    try:
        sys.modules[__package__ + ".facts"].write("probe-off", {"probe": name, "why": why})
    except Exception:
        try:
            sys.modules[__package__ + ".flight"].write_off(name, why)
        except Exception:
            pass


def remove_all():
    """Take every hook out; the training goes on unrecorded."""
    for name in list(_removers):
        remove = _removers.pop(name)
        try:
            remove()
        except Exception as fault:
            OFF[name] = "%s: %s" % (type(fault).__name__, fault)


def installed():
    return sorted(_removers)
