"""Findings and curves as a run of their own in TensorBoard, next to those that the training writes there.

In a folder below theirs: in the same one TensorBoard would turn to the newer file, and read theirs no further. The
format is a few fields of protocol buffers in checksummed frames; written by hand it needs no TensorBoard here.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Iterator
from typing import Any

from unstuck.model import Case
from unstuck.report.report_file import report_text
from unstuck.report.series import series
from unstuck.rules.diagnose import Diagnosis

FOLDER = "unstuck"
CURVES = ("loss", "rate", "gradient_norm")
_STRING = 7  # DT_STRING


def write_events(log_folder: str, case: Case, diagnosis: Diagnosis, *, redact: bool = False) -> None:
    """Raises OSError."""
    folder = os.path.join(log_folder, FOLDER)
    os.makedirs(folder, exist_ok=True)
    name = f"events.out.tfevents.{int(time.time())}.{os.uname().nodename}.{os.getpid()}.unstuck"
    with open(os.path.join(folder, name), "xb") as file:
        file.writelines(_frame(event) for event in _events(case, diagnosis, redact))


def _events(case: Case, diagnosis: Diagnosis, redact: bool) -> Iterator[bytes]:
    now = time.time()
    yield _event(now, 0, _bytes(3, b"brain.Event:2"))
    step = max((flight.step for flight in case.flights), default=0)
    yield _event(now, step, _bytes(5, _text("findings", report_text(".md", case, diagnosis, redact=redact))))
    for tag, at, value in _points(series(case)):
        yield _event(now, at, _bytes(5, _bytes(1, _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value))))


def _points(plain: dict[str, Any]) -> Iterator[tuple[str, int, float]]:
    for name in CURVES:
        for number, curve in enumerate(plain[name]):
            tag = f"unstuck/{name}" + (f"/{number}" if number else "")
            for step, value in zip(curve["step"], curve["value"], strict=True):
                if value is not None:
                    yield tag, int(step), value


def _event(at: float, step: int, rest: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", at) + b"\x10" + _varint(step) + rest


def _text(tag: str, words: str) -> bytes:
    """A value that the text page of TensorBoard shows as Markdown."""
    plugin = _bytes(9, _bytes(1, _bytes(1, b"text")))
    shape = _bytes(2, _bytes(2, b"\x08\x01"))
    tensor = _bytes(8, b"\x08" + _varint(_STRING) + shape + _bytes(8, words.encode()))
    return _bytes(1, _bytes(1, f"unstuck/{tag}/text_summary".encode()) + tensor + plugin)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _frame(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + _checksum(length) + content + _checksum(content)


def _checksum(content: Iterable[int]) -> bytes:
    """CRC-32C, turned and shifted as these files want it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
    return byte


_TABLE = [_entry(byte) for byte in range(256)]
