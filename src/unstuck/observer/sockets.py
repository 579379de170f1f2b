"""Who is at the other end of a socket: readable addresses, and the process that has the peer open."""

from __future__ import annotations

import ipaddress
import re
import socket
import struct
import sys
from dataclasses import dataclass

from . import proc

_INODE = re.compile(r"^socket:\[(\d+)\]$")
_LISTEN = "0A"
_TABLES = ("tcp", "tcp6", "udp", "udp6")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of /proc/net/{tcp,udp}."""

    protocol: str
    local: str
    remote: str
    state: str
    inode: int


class Sockets:
    """Sockets as each network namespace lists them, read once a look when first needed."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._unix: dict[str, dict[str, str]] = {}

    def describe(self, pid: int, target: str) -> tuple[str, str | None]:
        """Readable text for "socket:[N]", and the "socket:[N]" of its peer on this machine if there is one."""
        match = _INODE.match(target)
        if match is None:
            return target, None
        inode, namespace = int(match[1]), proc.link(f"/proc/{pid}/ns/net") or str(pid)
        if namespace not in self._rows:
            self._rows[namespace] = [
                row for name in _TABLES for row in parse_table(name, proc.maybe(f"/proc/{pid}/net/{name}", 1 << 24))
            ]
            self._unix[namespace] = _unix_names(proc.maybe(f"/proc/{pid}/net/unix", 1 << 24))
        rows = self._rows[namespace]
        mine = next((row for row in rows if row.inode == inode), None)
        if mine is None:
            name = self._unix[namespace].get(match[1])
            other = None if name is None else unix_peer(inode)
            return target if name is None else f"unix {name or target}", f"socket:[{other}]" if other else None
        if mine.state == _LISTEN:
            return f"{mine.protocol} {mine.local} (listening)", None
        peer = next((row for row in rows if row.local == mine.remote and row.remote == mine.local), None)
        # Its inode is 0 until the server accepts it.
        return f"{mine.protocol} {mine.remote}", f"socket:[{peer.inode}]" if peer and peer.inode else None


def parse_table(name: str, text: str) -> list[Row]:
    rows = []
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) >= 10:
            rows.append(Row(name[:3], _address(words[1]), _address(words[2]), words[3], int(words[9])))
    return rows


def _address(field: str) -> str:
    """`0100007F:1F90` is 127.0.0.1:8080: 32-bit words in the machine's byte order, the port as a number."""
    digits, _, port = field.partition(":")
    order = "<" if sys.byteorder == "little" else ">"
    count = len(digits) // 8
    packed = struct.pack(f"{order}{count}I", *struct.unpack(f">{count}I", bytes.fromhex(digits)))
    if len(packed) == 4:
        return f"{ipaddress.IPv4Address(packed)}:{int(port, 16)}"
    six = ipaddress.IPv6Address(packed)
    return f"{six.ipv4_mapped}:{int(port, 16)}" if six.ipv4_mapped else f"[{six}]:{int(port, 16)}"


def _unix_names(text: str) -> dict[str, str]:
    """By inode: the path a unix socket is bound to, or nothing."""
    rows = (line.split() for line in text.splitlines()[1:])
    return {words[6]: " ".join(words[7:8]) for words in rows if len(words) >= 7}


def unix_peer(inode: int) -> int | None:
    """Ask the kernel (sock_diag) for the inode of a unix socket's other end."""
    family_unix, request_type, peer_attribute = 1, 20, 2  # AF_UNIX, SOCK_DIAG_BY_FAMILY, UNIX_DIAG_PEER
    show_peer, any_cookie = 4, 0xFFFFFFFF
    body = struct.pack("=BBHIIIII", family_unix, 0, 0, 0xFFFFFFFF, inode, show_peer, any_cookie, any_cookie)
    header = struct.pack("=IHHII", 16 + len(body), request_type, 1, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 4) as diag:
            diag.settimeout(0.5)
            diag.send(header + body)
            reply = diag.recv(8192)
    except OSError:
        return None
    if len(reply) < 32 or struct.unpack_from("=IH", reply)[1] != request_type:
        return None
    at, end = 16 + 16, struct.unpack_from("=I", reply)[0]
    while at + 4 <= end:
        length, kind = struct.unpack_from("=HH", reply, at)
        if kind == peer_attribute:
            return int(struct.unpack_from("=I", reply, at + 4)[0])
        at += max(4, (length + 3) & ~3)
    return None
