"""What happens on the device in a stretch of code: arithmetic, memory moved, memory held, operations."""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

aten: Any = torch.ops.aten

_CONVOLUTIONS = {aten.convolution, aten._convolution, aten.cudnn_convolution, aten.convolution_backward}
_LOW_PRECISION = {torch.bfloat16, torch.float16}


def _attention(q: Any, k: Any, v: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
    return sdpa_flop_count(q.shape, k.shape, v.shape)


def _attention_backward(out: Any, q: Any, k: Any, v: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
    return sdpa_backward_flop_count(out.shape, q.shape, k.shape, v.shape)


# torch counts attention on a GPU alone.
_COUNTS: dict[Any, Any] = {
    **flop_registry,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}


class Counter(TorchDispatchMode):
    """Counts what torch does while it is entered, the backward pass included.

    Attributes:
        flops: Floating-point operations of matrix products, convolutions and attention.
        by_kind: The same by "convolution", "attention" and "product".
        low_precision: The part in 16 bits.
        operations: Number of operations, about the number of kernels on a GPU.
        moved: Bytes read and written by all operations, each by itself.
        held: Bytes of tensors made in here and still there.
        course: ``held`` after each operation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self._storages: set[int] = set()
        self.restart()

    def restart(self) -> None:
        """Count from 0 again; memory that is held stays."""
        self.flops = self.low_precision = self.operations = self.moved = 0
        self.by_kind = {"convolution": 0, "attention": 0, "product": 0}
        self.course: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one operation, taken apart if it is made of others."""
        kwargs = kwargs or {}
        if func._overloadpacket not in _COUNTS and func is not torch.ops.prim.device.default:
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        self._count(func, args, kwargs, out)
        return out

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        known = {_place(tensor) for tensor in given}
        if func._schema.is_mutable or any(_place(tensor) not in known for tensor in made):  # not a view
            self.operations += 1
            self.moved += sum(map(_bytes, given)) + sum(map(_bytes, made))
        for tensor in made:
            if _place(tensor) not in known:
                self._hold(tensor)
        self.course.append(self.held)
        packet = func._overloadpacket
        if packet in _COUNTS:
            flops = int(_COUNTS[packet](*args, **kwargs, out_val=out))
            self.flops += flops
            self.by_kind[_kind(packet)] += flops
            self.low_precision += flops if given and given[0].dtype in _LOW_PRECISION else 0

    def _hold(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            self._storages.add(key)
            self.held += storage.nbytes()
            weakref.finalize(storage, self._free, key, storage.nbytes())

    def _free(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self.held -= size


def _kind(packet: Any) -> str:
    if packet in _CONVOLUTIONS:
        return "convolution"
    return "attention" if "attention" in str(packet) else "product"


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
