"""Files in the folder of the flight files by which the one that scans and the one that asked for it understand each
other."""

CLAIM = "scan-claimed"
"""Made by the process that scans: there is to be one."""
STOP = "scan-stop"
"""It is to stop, and to tell what it has seen."""
DONE = "scan-done"
"""All is told."""
