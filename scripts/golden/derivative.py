"""Writes packages/tensor/golden/derivative.json: the derivatives that are operations themselves, as PyTorch's backward passes compute them.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/derivative.py
"""
import math

import torch
import torch.nn.functional as F
from common import In, case, seed, values, write

seed(24)


def of_argument(fn):
    def run(g, x, *args):
        leaf = x.detach().clone().requires_grad_(True)
        # Contiguous: PyTorch 1.13's gelu writes rubbish for gradients that are not.
        return torch.autograd.grad(fn(leaf, *args), leaf, g.expand(leaf.shape).contiguous())[0]

    return run


aten = torch.ops.aten
OPS = [
    ("reluBackward", lambda g, y: aten.threshold_backward(g, y, 0), ()),
    ("tanhBackward", lambda g, y: aten.tanh_backward(g, y), ()),
    ("sigmoidBackward", lambda g, y: aten.sigmoid_backward(g, y), ()),
    ("leakyReluBackward", of_argument(F.leaky_relu), (0.3,)),
    ("eluBackward", of_argument(F.elu), (0.7,)),
    ("siluBackward", of_argument(F.silu), ()),
    ("geluBackward", of_argument(lambda x, o={}: F.gelu(x, **o)), ({},)),
    ("geluBackward", of_argument(lambda x, o: F.gelu(x, **o)), ({"approximate": "tanh"},)),
    ("softplusBackward", of_argument(lambda x, o={}: F.softplus(x, **o)), ({},)),
    ("softplusBackward", of_argument(lambda x, o: F.softplus(x, **o)), ({"beta": 2, "threshold": 1.5},)),
]
SPECIAL = [0.0, -0.0, 1e-30, 25.0, -25.0, 100.0, -100.0, math.nan]
for op, fn, args in OPS:
    what = f" {args[0]}" if args else ""
    for dtype in ("float32", "float64"):
        v = lambda *shape: values(shape, dtype)
        t = lambda x: torch.tensor(x, dtype=getattr(torch, dtype))
        case(f"matrix {dtype}{what}", op, fn, In(v(2, 3)), In(v(2, 3)), *args)
        case(f"vector of 83 {dtype}{what}", op, fn, In(v(83)), In(v(83)), *args)
        if not op.startswith(("tanh", "sigmoid")):
            # Of NaN PyTorch 1.13's elu makes a NaN in float64 and lets the gradient through in float32.
            special = SPECIAL[:-1] if op == "eluBackward" else SPECIAL
            case(f"special values {dtype}{what}", op, fn, In(v(len(special))), In(t(special)), *args)
    case(f"0-d{what}", op, fn, In(values(())), In(values(())), *args)
    case(f"empty{what}", op, fn, In(values((0, 3))), In(values((0, 3))), *args)
    case(f"one gradient for all{what}", op, fn, In(values(()), ("expand", [3, 2])), In(values((3, 2))), *args)
    case(f"transposed{what}", op, fn, In(values((3, 2)), ("transpose", 0, 1)), In(values((2, 3))), *args)
    case(f"argument transposed{what}", op, fn, In(values((2, 3))), In(values((3, 2)), ("transpose", 0, 1)), *args)

for op, log in (("softmaxBackward", False), ("logSoftmaxBackward", True)):
    f = aten._log_softmax_backward_data if log else aten._softmax_backward_data
    for dtype in ("float32", "float64"):
        for shape, dims in (((3, 4), (0, 1)), ((2, 3, 4), (1, -1)), ((2, 37), (1,)), ((), (0,)), ((0, 3), (1,))):
            for d in dims:
                y = torch.softmax(values(shape, dtype), d)
                y = torch.log(y) if log else y
                case(f"{list(shape)}, dim {d} {dtype}", op, lambda g, y, d: f(g, y, d, y.dtype), In(values(shape, dtype)), In(y), d)
    y = torch.softmax(values((3, 2)), 0)
    case("transposed", op, lambda g, y, d: f(g.contiguous(), y.contiguous(), d, y.dtype), In(values((2, 3)), ("transpose", 0, 1)), In(torch.log(y) if log else y), 0)

write("derivative")
