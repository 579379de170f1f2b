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
import resource
import threading
from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing.reductions as torchs

from .wire import AT_ONCE, Message, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INLINE = 1 << 15  # bytes up to which a storage is sent as it is: mapping it would take longer
FREE_FILES = 16  # descriptors that a worker leaves unused


def collate_outside_shm() -> None:
    """In a worker: where torch's collate function takes shared memory for a batch, it gets some that does not count
    against /dev/shm, which is small in containers; and none for a batch that is sent as bytes."""

    def new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
        if size <= INLINE or torch.device(device).type != "cpu":
            return cls(size, device=device)
        try:
            descriptor = os.memfd_create("unstuck-batch")
        except OSError:  # too many open files
            return cls(size)
        try:
            os.ftruncate(descriptor, size)
            return cls._new_shared_fd_cpu(descriptor, size)
        finally:
            os.close(descriptor)

    torch.UntypedStorage._new_shared = classmethod(new_shared)


def pack(message: Any, plain: bool = False) -> Packet:
    """`plain`: all of it as bytes, because the receiver has too many open files."""
    return _Packing(plain).packet(message)


class _Packing:
    """Of one message."""

    def __init__(self, plain: bool) -> None:
        self._sharing = not plain
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FREE_FILES
        self._named = torch.multiprocessing.get_sharing_strategy() == "file_system"
        self._descriptors: list[int] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def packet(self, message: Any) -> Packet:
        file = io.BytesIO()
        pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = {
            **copyreg.dispatch_table,
            **ForkingPickler._extra_reducers,  # type: ignore[attr-defined]
            torch.Tensor: self._tensor,
            torch.UntypedStorage: self._storage,
        }
        pickler.dump(message)
        return Packet(file.getvalue(), self._descriptors, self._kept if self._descriptors else None)

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
        if self._sharing and size > INLINE and not (self._named and storage.is_shared()):  # it has a name of its own
            try:
                descriptor, size = storage._share_fd_cpu_()
                self._descriptors.append(descriptor)
                self._sharing = descriptor < self._most and len(self._descriptors) < AT_ONCE - 1
                return number, (len(self._descriptors) - 1, size)
            except (RuntimeError, OSError):  # /dev/shm is full, or there are too many open files
                self._sharing = False
        return number, bytearray(ctypes.string_at(storage.data_ptr(), size))


class _Arriving(threading.local):
    """The message that this thread unpacks."""

    descriptors: list[int] = []  # noqa: RUF012
    storages: dict[int, Any] = {}  # noqa: RUF012


_arriving = _Arriving()


def unpack(message: Message) -> Any:
    try:
        if not message.complete:
            raise OSError("too many open files")
        _arriving.descriptors, _arriving.storages = message.descriptors, {}
        return pickle.loads(message.body())
    finally:
        _arriving.descriptors, _arriving.storages = [], {}
        message.close()


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
