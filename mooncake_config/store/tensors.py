"""torch tensors as arrays of numbers, and back, on the same memory. torch is not imported before a tensor is met."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor; where torch was never imported, nothing is."""
    return is_tensor_type(type(value))


def is_tensor_type(kind: type) -> bool:
    """Whether values of a type are torch tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(kind, torch.Tensor)


def dtype_name(tensor: Any) -> str:
    """The name of a tensor's dtype, such as ``bfloat16``."""
    return str(tensor.dtype).removeprefix("torch.")


def plain_tensor(tensor: Any) -> Any:
    """The numbers of a tensor alone: on the CPU, contiguous, outside of autograd; no copy where it is so already."""
    return tensor.detach().cpu().contiguous()


def tensor_array(tensor: Any) -> np.ndarray[Any, Any]:
    """The numbers of a tensor, on its memory where that is plain. int16 stands for bfloat16, which NumPy lacks."""
    import torch  # type: ignore[import-not-found, unused-ignore]  # torch is no dependency

    plain = plain_tensor(tensor)
    array: np.ndarray[Any, Any] = (plain.view(torch.int16) if plain.dtype is torch.bfloat16 else plain).numpy()
    return array


def array_tensor(array: np.ndarray[Any, Any], name: str) -> Any:
    """The tensor of :func:`tensor_array`, on the memory of the array. ``name`` is that of its dtype."""
    import torch

    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if name == "bfloat16" else tensor
