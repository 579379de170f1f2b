"""Folders into which a training writes for TensorBoard, known from outside by the files that it has open."""

from __future__ import annotations

import os

NAME = "events.out.tfevents."
FIRST_SECONDS, MORE = 2.0, 1.2  # between two looks, ever more rarely: a writer stays open as long as its run


class EventFolders:
    def __init__(self, root: int) -> None:
        self._root = root
        self._due, self._gap = 0.0, FIRST_SECONDS
        self.found: set[str] = set()

    def tick(self, now: float) -> None:
        if now < self._due:
            return
        self._due, self._gap = now + self._gap, self._gap * MORE
        self.look()

    def look(self) -> None:
        folder = f"/proc/{self._root}/fd"
        try:
            handles = os.listdir(folder)
        except OSError:
            return
        for handle in handles:
            try:
                path = os.readlink(f"{folder}/{handle}")
            except OSError:
                continue
            if NAME in path and os.path.isabs(path):
                self.found.add(os.path.dirname(path))
