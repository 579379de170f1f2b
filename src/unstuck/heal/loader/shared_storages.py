"""Batches as bytes and descriptors, and back: large tensors stay in the shared memory they are in.

torch's own way has the receiver ask the sender for each descriptor, over a connection made for it: slow, and impossible
once the sender is dead. Here they travel with the message (`wire`). Small storages travel as bytes.
"""

from __future__ import annotations

import copyreg
import ctypes
import io
import os
import pickle
import threading
from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing.reductions as torchs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INLINE = 1 << 15  # bytes up to which a storage is sent as it is: mapping it would take longer


class Packing:
    """Of one message. `plain`: everything as bytes, because there are too many open files to pass any."""

    def __init__(self, plain: bool = False) -> None:
        self.descriptors: list[int] = []
        self.opened = Opened()
        self._plain = plain
        self._by_name = not plain and torch.multiprocessing.get_sharing_strategy() == "file_system"
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def pack(self, message: Any) -> tuple[bytes, Any]:
        """The bytes; and what has to live until they and the descriptors are sent."""
        file = io.BytesIO()
        pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = self._table()
        pickler.dump(message)
        return file.getvalue(), (self._kept, self.opened)

    def _table(self) -> dict[Any, Any]:
        table = {**copyreg.dispatch_table, **ForkingPickler._extra_reducers}  # type: ignore[attr-defined]
        table[torch.Tensor] = self._tensor
        if not self._by_name:
            table[torch.UntypedStorage] = self._storage
        return table

    def _tensor(self, tensor: Any) -> Any:
        """The ordinary one in fewer steps than torch takes for any."""
        if (
            tensor.requires_grad
            or tensor.layout is not torch.strided
            or tensor.device.type != "cpu"
            or tensor.is_quantized
            or tensor.is_nested
            or tensor.is_conj()
            or tensor.is_neg()
            or any(getattr(tensor, "names", ()))
            or self._by_name
        ):
            return torchs.reduce_tensor(tensor)
        storage = tensor.untyped_storage()
        about = tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        return unpack_tensor, (*self._place(storage), *about)

    def _storage(self, storage: Any) -> Any:
        if storage.device.type != "cpu":
            return torchs.reduce_storage(storage)
        return unpack_storage, self._place(storage)

    def _place(self, storage: Any) -> tuple[int, Any]:
        """Its number in this message, and how it comes: as bytes, as the size of what the next descriptor maps, or
        None if it came before."""
        identity, size = storage._cdata, storage.nbytes()
        number = self._numbers.get(identity)
        if number is not None:
            return number, None
        self._numbers[identity] = number = len(self._kept)
        self._kept.append(storage)  # also: the identity stays its own until the message is complete
        address = storage.data_ptr()
        if size <= INLINE or self._plain:
            return number, bytearray(ctypes.string_at(address, size))
        try:
            descriptor, size = storage._share_fd_cpu_()
        except (RuntimeError, OSError):  # /dev/shm is full, or there are too many open files
            descriptor = self.opened.copy_of(address, size)
        if descriptor is None:
            return number, bytearray(ctypes.string_at(address, size))
        self.descriptors.append(descriptor)
        return number, (len(self.descriptors) - 1, size)


class Opened(list[int]):
    """Descriptors of ours, closed once they are sent."""

    def copy_of(self, address: int, size: int) -> int | None:
        """Memory that does not count against /dev/shm, with a copy in it; None if there is none to be had."""
        try:
            descriptor = os.memfd_create("unstuck-batch")
        except OSError:
            return None
        self.append(descriptor)
        whole = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
        done = 0
        while done < size:
            done += os.write(descriptor, whole[done:])
        return descriptor

    def __del__(self) -> None:
        for descriptor in self:
            os.close(descriptor)


class _Arriving(threading.local):
    """The message that this thread unpacks."""

    descriptors: list[int] = []  # noqa: RUF012
    storages: dict[int, Any] = {}  # noqa: RUF012


_arriving = _Arriving()


def unpack(body: bytearray, descriptors: list[int]) -> Any:
    _arriving.descriptors, _arriving.storages = descriptors, {}
    try:
        return pickle.loads(body)
    finally:
        _arriving.descriptors, _arriving.storages = [], {}


def unpack_storage(number: int, place: Any) -> Any:
    if place is None:
        return _arriving.storages[number]
    if isinstance(place, bytearray):
        made = torch.frombuffer(place, dtype=torch.uint8).untyped_storage() if place else torch.UntypedStorage()
    else:
        index, size = place
        made = torch.UntypedStorage._new_shared_fd_cpu(_arriving.descriptors[index], size)
    _arriving.storages[number] = made
    return made


def unpack_tensor(number: int, place: Any, dtype: Any, offset: int, shape: Any, stride: Any) -> Any:
    return torch.empty((0,), dtype=dtype).set_(unpack_storage(number, place), offset, shape, stride)
