"""Writes packages/tensor/golden/inplace.json: the in-place forms of operations (tensor's ops-in-place.ts), into dense tensors and views.
Run with PyTorch 1.13: python3 scripts/golden/inplace.py
"""
import re

import torch
import torch.nn.functional as F
from common import In, in_place, seed, values, write

seed(31)
UNARY = """neg exp log sqrt sin cos tanh sigmoid relu abs sign floor ceil round trunc reciprocal rsqrt square log1p expm1 log2 log10 exp2 tan
    sinh cosh asin acos atan erf nanToNum""".split()
# By name: what calls it, and its arguments after the first for the shape that is written to.
y = lambda shape, d: In(values(shape, d, 0.5, 2.0))
OTHERS = {
    "pow": (lambda t, e: t.pow_(e), lambda s, d: [3]),
    "clamp": (lambda t, a, b: t.clamp_(a, b), lambda s, d: [-0.5, 0.75]),
    "leakyRelu": (lambda t, s: F.leaky_relu(t, s, inplace=True), lambda s, d: [0.1]),
    "elu": (lambda t, a: F.elu(t, a, inplace=True), lambda s, d: [1.5]),
    "hardtanh": (lambda t: F.hardtanh(t, inplace=True), lambda s, d: []),
    "remainder": (lambda t, o: t.remainder_(o), lambda s, d: [y(s, d)]),
    "fmod": (lambda t, o: t.fmod_(o), lambda s, d: [y(s[-1:], d)]),
    "floorDivide": (lambda t, o: t.floor_divide_(o), lambda s, d: [0.7]),
    "atan2": (lambda t, o: t.atan2_(o), lambda s, d: [y(s, d)]),
    "lerp": (lambda t, e, w: t.lerp_(e, w), lambda s, d: [y(s, d), 0.25]),
    "addcmul": (lambda t, a, b: t.addcmul_(a, b), lambda s, d: [y(s, d), y(s[-1:], d)]),
    "addcdiv": (lambda t, a, b: t.addcdiv_(a, b), lambda s, d: [y(s, d), y(s[-1:], d)]),
    "cumsum": (lambda t, k: t.cumsum_(k), lambda s, d: [0]),
    "cumprod": (lambda t, k: t.cumprod_(k), lambda s, d: [-1]),
    "tril": (lambda t, k: t.tril_(k), lambda s, d: [1]),
    "triu": (lambda t, k: t.triu_(k), lambda s, d: [0]),
    "scatterAdd": (lambda t, k, i, s: t.scatter_add_(k, i.long(), s), lambda s, d: [0, index([1, 0, 1, 1], [2, 2]), y([2, 2], d)]),
    "scatter": (lambda t, k, i, s: t.scatter_(k, i.long(), s), lambda s, d: [1, index([1, 0, 0, 1], [2, 2]), y([2, 2], d)]),
    "indexAdd": (lambda t, k, i, s: t.index_add_(k, i.long(), s), lambda s, d: [0, index([1, 1, 0], [3]), y([3, *s[1:]], d)]),
    "indexFill": (lambda t, k, i, v: t.index_fill_(k, i.long(), v), lambda s, d: [0, index([1], [1]), 2.5]),
}
index = lambda data, shape: In(torch.tensor(data, dtype=torch.int32).reshape(shape))
MATRICES = [
    ("dense", lambda d, lo, hi: In(values((2, 3), d, lo, hi))),
    ("transposed", lambda d, lo, hi: In(values((3, 2), d, lo, hi), ("transpose", 0, 1))),
    ("inside", lambda d, lo, hi: In(values((3, 4), d, lo, hi), ("narrow", 0, 1, 2), ("narrow", 1, 0, 3))),
]
VECTORS = [
    ("a column", lambda d, lo, hi: In(values((3, 4), d, lo, hi), ("select", 1, 2))),
    ("empty", lambda d, lo, hi: In(values((0, 3), d, lo, hi))),
]
LOW = {"log": 0.1, "sqrt": 0.1, "rsqrt": 0.1, "log2": 0.1, "log10": 0.1, "log1p": -0.9, "asin": -1.0, "acos": -1.0}
torch_name = lambda op: re.sub(r"([A-Z])", lambda m: "_" + m[1].lower(), op) + "_"

for op in UNARY:
    low, high = LOW.get(op, -2.0), 1.0 if op in ("asin", "acos") else 2.0
    for label, x in [*MATRICES, *VECTORS]:
        in_place(f"{label} float32", f"{op}_", lambda t: getattr(t, torch_name(op))(), x("float32", low, high))
    in_place("float64", f"{op}_", lambda t: getattr(t, torch_name(op))(), MATRICES[0][1]("float64", low, high))
    if op in ("neg", "abs", "relu", "sign"):
        in_place("int32", f"{op}_", lambda t: getattr(t, torch_name(op))(), In(values((4,), "int32")))
for op, (fn, args) in OTHERS.items():
    for label, x in MATRICES:
        for dtype in ("float32", "float64"):
            target = x(dtype, -2.0, 2.0)
            in_place(f"{label} {dtype}", f"{op}_", fn, target, *args(list(target.tensor().shape), dtype))
in_place("int32 squared", "pow_", lambda t, e: t.pow_(e), In(values((4,), "int32")), 2)
in_place("int32", "clamp_", lambda t, a, b: t.clamp_(a, b), In(values((4,), "int32")), -1, 2)
in_place("max only", "clamp_", lambda t, a, b: t.clamp_(max=b), In(values((4,))), None, 0.5)
# float64 with float32 is computed as float64; a 0-d tensor does not count for that.
for name, value in (("add_", lambda x, y: x.add_(y)), ("sub_", lambda x, y: x.sub_(y)), ("mul_", lambda x, y: x.mul_(y)), ("div_", lambda x, y: x.div_(y))):
    for y in ([1e40, 3.0], [1e-50, 3.0]) if name in ("mul_", "div_") else ([16777217.0, 0.1],):
        in_place(f"float64 {y}", name, value, In(torch.tensor([1e-30, 2.0])), In(torch.tensor(y, dtype=torch.float64)))
in_place("0-d float64", "mul_", lambda x, y: x.mul_(y), In(torch.tensor([2.0, 3.0])), In(torch.tensor(0.1, dtype=torch.float64)))
in_place("float64, alpha", "add_", lambda x, y, a: x.add_(y, alpha=a), In(torch.tensor([2.0, 3.0])), In(torch.tensor([1e40, 1.5], dtype=torch.float64)), 1e-39)
# Cases that were added later come last, so that the values above stay.
for label, x in [*MATRICES, *VECTORS]:
    for dtype in ("float32", "float64"):
        in_place(f"{label} {dtype}", "erfinv_", lambda t: t.erfinv_(), x(dtype, -0.9, 0.9))
write("inplace")
