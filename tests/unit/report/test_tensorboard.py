"""Event files, read back by the few rules of their format."""

from __future__ import annotations

import struct
from pathlib import Path

from unstuck.model import Case, Flight
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.report import tensorboard
from unstuck.rules.diagnose import Diagnosis


def frames(raw: bytes) -> list[bytes]:
    found = []
    while raw:
        (length,) = struct.unpack("<Q", raw[:8])
        content = raw[12 : 12 + length]
        assert raw[8:12] == tensorboard._checksum(raw[:8])
        assert raw[12 + length : 16 + length] == tensorboard._checksum(content)
        found.append(content)
        raw = raw[16 + length :]
    return found


def test_the_checksum_is_the_one_of_these_files() -> None:
    crc = 0xE3069283  # CRC-32C of "123456789", as its specification says
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert tensorboard._checksum(b"123456789") == struct.pack("<I", masked)


def test_findings_and_the_loss_are_written_below_the_folder(tmp_path: Path) -> None:
    loss = Loss(count=2, points=[(0, 1.5), (300, 0.5)])
    case = Case(flights=(Flight(7, role="main", step=300),), learnings=(Learning(pid=7, losses=[loss]),))
    tensorboard.write_events(str(tmp_path), case, Diagnosis())
    (file,) = (tmp_path / "unstuck").iterdir()
    version, text, *scalars = frames(file.read_bytes())
    assert version.endswith(b"brain.Event:2")
    assert b"unstuck/findings/text_summary" in text
    assert b"\x10\xac\x02" in text, "step 300, seven bits a byte"
    values = [b"unstuck/loss\x15" + struct.pack("<f", value) for value in (1.5, 0.5)]
    assert len(scalars) == 2
    assert all(value in scalar for value, scalar in zip(values, scalars, strict=True))
