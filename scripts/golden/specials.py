"""Writes packages/tensor/golden/specials.json: what PyTorch makes of NaN, infinities, zeros of both signs, denormals and the ends of the range, for every
operation that computes. These cases are "strict": zeros must have their sign and small numbers their digits.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/specials.py
"""
import math

import torch
import torch.nn.functional as F
from common import DTYPES, In, case, cases, write

ENDS = {"float32": [1e-40, -1e-40, 1.1754944e-38, 3.4e38, -3.4e38, 89.0, -104.0], "float64": [5e-324, -1e-310, 2.3e-308, 1.7e308, -1.7e308, 710.0, -746.0]}
COMMON = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan]
# In pairs with each other.
FEW = {"float32": [1e-40, 3.4e38, -3.4e38], "float64": [5e-324, 1.7e308, -1.7e308]}


def specials(dtype):
    return torch.tensor(COMMON + ENDS[dtype], dtype=DTYPES[dtype])


def strict(label, op, fn, *args):
    case(label, op, fn, *args)
    cases[-1]["strict"] = True


UNARY = {
    "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "relu": torch.relu, "abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil,
    "round": torch.round, "trunc": torch.trunc, "reciprocal": torch.reciprocal, "rsqrt": torch.rsqrt, "square": torch.square,
    "log1p": torch.log1p, "expm1": torch.expm1, "log2": torch.log2, "log10": torch.log10, "exp2": torch.exp2, "tan": torch.tan,
    "sinh": torch.sinh, "cosh": torch.cosh, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "erf": torch.erf,
    "leakyRelu": F.leaky_relu, "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "elu": F.elu,
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum,
    "pow": torch.pow, "remainder": torch.remainder, "fmod": torch.fmod, "floorDivide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "atan2": torch.atan2, "eq": torch.eq, "lt": torch.lt, "le": torch.le,
}
for dtype in ("float32", "float64"):
    x = specials(dtype)
    few = torch.tensor(COMMON + FEW[dtype], dtype=DTYPES[dtype])
    for op, fn in UNARY.items():
        # Beyond 1e30 the argument's own rounding is all that a sine shows.
        strict(dtype, op, fn, In(x[x.abs().nan_to_num(0) < 1e30] if op in ("sin", "cos", "tan") else x))
    for op, fn in BINARY.items():
        strict(f"{dtype}, all pairs", op, fn, In(few.reshape(-1, 1)), In(few))
    for low, high in ((-1.0, 1.0), (0.0, math.inf), (-math.inf, 0.0)):
        strict(f"{dtype} to {low} … {high}", "clamp", torch.clamp, In(x), low, high)
    for exponent in (0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 2.5, math.inf, -math.inf, math.nan):
        strict(f"{dtype}, exponent {exponent}", "pow", torch.pow, In(x), exponent)
    # Each special value in a row among ordinary ones, and side by side.
    n = len(x)
    short = few[few.abs() != 0.5]
    rows = torch.cat([torch.tensor([0.25, -0.75, 2.0], dtype=x.dtype).repeat(n, 1), x.reshape(-1, 1)], 1)
    pairs = torch.stack([short.repeat_interleave(len(short)), short.repeat(len(short))], 1)
    for label, t in (("among others", rows), ("in pairs", pairs)):
        what = f"{dtype}, {label}"
        strict(what, "sum", torch.sum, In(t), 1)
        strict(what, "mean", torch.mean, In(t), 1)
        strict(what, "prod", torch.prod, In(t), 1)
        strict(what, "amax", torch.amax, In(t), 1)
        strict(what, "amin", torch.amin, In(t), 1)
        strict(what, "argmax", torch.argmax, In(t), 1)
        strict(what, "argmin", torch.argmin, In(t), 1)
        strict(what, "logSumExp", torch.logsumexp, In(t), 1)
        strict(what, "softmax", torch.softmax, In(t), 1)
        strict(what, "logSoftmax", torch.log_softmax, In(t), 1)
        strict(what, "cumsum", torch.cumsum, In(t), 1)
        strict(what, "cumprod", torch.cumprod, In(t), 1)
        strict(what, "argsort", lambda v, d: torch.sort(v, dim=d, stable=True)[1], In(t), 1)
    strict(f"{dtype}, rows by columns", "matmul", torch.matmul, In(rows), In(rows, ("transpose", 0, 1)))
    strict(dtype, "where", torch.where, In(x > 0), In(x), In(-x))
    strict(dtype, "erfinv", torch.erfinv, In(x))
write("specials")
