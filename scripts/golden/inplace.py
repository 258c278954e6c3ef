"""Writes packages/tensor/golden/inplace.json: in-place operations of one tensor, into dense tensors and views.
Run with PyTorch 1.13: python3 scripts/golden/inplace.py
"""
import torch
from common import In, in_place, seed, values, write

seed(31)
OPS = ["neg_", "exp_", "log_", "sqrt_", "sin_", "cos_", "tanh_", "sigmoid_", "relu_", "abs_", "sign_"]
TARGETS = [
    ("dense", lambda d, lo: In(values((2, 3), d, lo, 2.0))),
    ("a column inside", lambda d, lo: In(values((3, 4), d, lo, 2.0), ("select", 1, 2))),
    ("transposed", lambda d, lo: In(values((2, 3), d, lo, 2.0), ("transpose", 0, 1))),
    ("empty", lambda d, lo: In(values((0, 3), d, lo, 2.0))),
]
for op in OPS:
    low = 0.1 if op in ("log_", "sqrt_") else -2.0
    for dtype in ("float32", "float64"):
        for label, x in TARGETS if dtype == "float32" else TARGETS[:1]:
            in_place(f"{label} {dtype}", op, lambda t: getattr(t, op)(), x(dtype, low))
    if op in ("neg_", "abs_", "relu_", "sign_"):
        in_place("int32", op, lambda t: getattr(t, op)(), In(values((4,), "int32")))
for label, x in TARGETS:
    in_place(f"{label} cubed", "pow_", lambda t, e: t.pow_(e), x("float32", 0.1), 3)
    in_place(f"{label} to a fraction", "pow_", lambda t, e: t.pow_(e), x("float64", 0.1), -0.5)
    in_place(f"{label} both bounds", "clamp_", lambda t, a, b: t.clamp_(a, b), x("float32", -2.0), -0.5, 0.75)
in_place("int32 squared", "pow_", lambda t, e: t.pow_(e), In(values((4,), "int32")), 2)
in_place("int32", "clamp_", lambda t, a, b: t.clamp_(a, b), In(values((4,), "int32")), -1, 2)
in_place("max only", "clamp_", lambda t, a, b: t.clamp_(max=b), In(values((4,))), None, 0.5)
write("inplace")
