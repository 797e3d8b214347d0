"""What fits on a device, asked before anything is put there."""

from __future__ import annotations

import torch

from lighttouch.validation import available_memory


def free_memory(device: torch.device) -> float:
    """Bytes that are free on the device."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return float(available_memory())


def in_gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
