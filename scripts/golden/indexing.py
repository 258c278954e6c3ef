"""Writes packages/tensor/golden/indexing.json: views, joining, indexing and matrix composites as PyTorch computes them, with gradients.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/indexing.py
"""
import torch
from common import In, grad_case, seed, values, write

seed(31)


def layouts(*shape, dtype="float32"):
    """The same shape dense, transposed in memory, inside of a larger tensor, and in float64."""
    rest = list(range(len(shape)))[::-1]
    yield "dense", In(values(shape, dtype))
    if len(shape) > 1:
        yield "permuted", In(values(shape[::-1], dtype), ("permute", rest))
        wide = (*shape[:-1], shape[-1] + 2)
        yield "inside", In(values(wide, dtype), ("narrow", len(shape) - 1, 1, shape[-1]))
    yield "float64", In(values(shape, "float64"))


# --- cutting and folding ---
flat = lambda x, a=0, b=-1: torch.flatten(x, a, b)
for label, x in layouts(2, 3, 2):
    grad_case(label, "flatten", flat, x)
    grad_case(f"{label} from 1", "flatten", flat, x, 1)
    grad_case(f"{label} up to -2", "flatten", flat, x, 0, -2)
    grad_case(label, "split", torch.split, x, 2, 1)
    grad_case(f"{label} by sizes", "split", torch.split, x, [1, 0, 2], -2)
    grad_case(label, "chunk", torch.chunk, x, 2, 1)
    grad_case(label, "unbind", torch.unbind, x, -1)
grad_case("0-d", "flatten", flat, In(values(())))
grad_case("empty", "flatten", flat, In(values((2, 0))))
grad_case("empty", "split", torch.split, In(values((0, 2))), 3)
grad_case("empty", "chunk", torch.chunk, In(values((0, 2))), 3)
grad_case("more than there is", "chunk", torch.chunk, In(values((2,))), 3)
grad_case("empty", "unbind", torch.unbind, In(values((2, 0))))
grad_case("int32", "unbind", torch.unbind, In(values((2, 2), "int32")))

write("indexing")
