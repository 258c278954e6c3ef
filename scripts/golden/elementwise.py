"""Writes packages/tensor/golden/elementwise.json: element-wise functions, activations and logic, with gradients.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/elementwise.py
"""
import math

import torch
import torch.nn.functional as F
from common import SPECIAL, In, case, grad_case, layouts, seed, values, write
from tables import ACTIVATIONS, UNARY

seed(21)

# Theirs end in infinities or huge numbers whose digits mean nothing.
SMALL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 1e-30, 30.0, -30.0, math.inf, -math.inf, math.nan]

for name, fn, low, high in UNARY:
    for label, x in layouts("float32", low, high):
        if label in ("0-d", "dense", "empty", "transposed", "strided inside", "expanded", "vector of 37"):
            grad_case(f"{label} float32", name, fn, x)
    grad_case("float64", name, fn, In(values((2, 3), "float64", low, high), ("transpose", 0, 1)))
    for dtype in (torch.float32, torch.float64):
        special = [x for x in SMALL if not (name == "tanhshrink" and abs(x) == 1e-30)]
        case(f"special values {str(dtype)[6:]}", name, fn, In(torch.tensor(special, dtype=dtype)))
    if name not in ACTIVATIONS:
        case("int32", name, fn, In(torch.tensor([4, 1, 9], dtype=torch.int32)))
        if name not in ("floor", "ceil", "round", "trunc"):
            case("bool", name, fn, In(torch.tensor([True, True])))
case("halves", "round", torch.round, In(torch.tensor([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49999997, 8388607.5, 2.0**31])))
case("tails", "erf", torch.erf, In(torch.tensor([-6.0, -4.0, -1.0, -0.84375, 1e-8, 0.84375, 1.0, 1.25, 2.0, 2.9, 4.0, 6.0, 30.0], dtype=torch.float64)))

grad_case("slope 0.3", "leakyRelu", F.leaky_relu, In(values((5,))), 0.3)
grad_case("alpha 0.3", "elu", F.elu, In(values((5,))), 0.3)
for label, x in (("float32", In(values((2, 5), "float32", -4, 4))), ("float64", In(values((5,), "float64", -4, 4)))):
    grad_case(f"tanh {label}", "gelu", lambda x, o: F.gelu(x, approximate=o["approximate"]), x, {"approximate": "tanh"})
    grad_case(f"beta and threshold {label}", "softplus", lambda x, o: F.softplus(x, o["beta"], o["threshold"]), x, {"beta": 2, "threshold": 3})
grad_case("above the threshold", "softplus", F.softplus, In(torch.tensor([19.0, 20.0, 21.0, 100.0])))
grad_case("bounds", "hardtanh", F.hardtanh, In(torch.tensor([-0.5, 0.75, 0.0, -2.0, 3.0])), -0.5, 0.75)
grad_case("0 and -0", "leakyRelu", F.leaky_relu, In(torch.tensor([0.0, -0.0, 1.0])))
grad_case("0 and -0", "elu", F.elu, In(torch.tensor([0.0, -0.0, 1.0])))
grad_case("0", "logSigmoid", F.logsigmoid, In(torch.tensor([0.0, 30.0, -30.0])))

# --- questions and logic ---
for name, fn in (("isNaN", torch.isnan), ("isInf", torch.isinf), ("isFinite", torch.isfinite), ("logicalNot", torch.logical_not)):
    for dtype in (torch.float32, torch.float64):
        case(f"special values {str(dtype)[6:]}", name, fn, In(torch.tensor(SPECIAL, dtype=dtype)))
    case("transposed", name, fn, In(torch.tensor([[0.0, math.nan, 1.0], [math.inf, 2.0, -math.inf]]), ("transpose", 0, 1)))
    case("int32", name, fn, In(torch.tensor([0, 3], dtype=torch.int32)))
    case("bool", name, fn, In(torch.tensor([True, False])))
for dtype in (torch.float32, torch.float64):
    x = In(torch.tensor([1.5, math.nan, math.inf, -math.inf], dtype=dtype))
    grad_case(str(dtype)[6:], "nanToNum", torch.nan_to_num, x)
    grad_case(f"given {str(dtype)[6:]}", "nanToNum", lambda x, o: torch.nan_to_num(x, o["nan"], o["posinf"], o["neginf"]), x, {"nan": 7, "posinf": 8, "neginf": -9})
case("int32", "nanToNum", torch.nan_to_num, In(torch.tensor([1, 2], dtype=torch.int32)))
whole = lambda shape, dtype: torch.trunc(values(shape, "float64")).to(getattr(torch, dtype))
for name, fn in (("logicalAnd", torch.logical_and), ("logicalOr", torch.logical_or), ("logicalXor", torch.logical_xor)):
    for da in ("float32", "int32", "bool"):
        for db in ("float32", "float64", "bool"):
            case(f"{da} with {db}", name, fn, In(whole((2, 3), da)), In(whole((3,), db)))
    case("NaN", name, fn, In(torch.tensor([math.nan, math.nan, 0.0])), In(torch.tensor([0.0, 1.0, -0.0])))

# Cases that were added later come last, so that the values above stay.
for label, x in layouts("float32", -0.95, 0.95):
    grad_case(f"{label} float32", "erfinv", torch.erfinv, x, twice=True)
grad_case("float64", "erfinv", torch.erfinv, In(values((2, 3), "float64", -0.95, 0.95), ("transpose", 0, 1)), twice=True)
for dtype in (torch.float32, torch.float64):
    case(f"special values {str(dtype)[6:]}", "erfinv", torch.erfinv, In(torch.tensor([*SMALL, 1.0000001, -1.0000001], dtype=dtype)))
    grad_case(f"ends {str(dtype)[6:]}", "erfinv", torch.erfinv, In(torch.tensor([1.0, -1.0, 0.0], dtype=dtype)))
    # Further out PyTorch loses digits to its own erf; see tensor's inverse-erf.test.ts.
    case(f"tails {str(dtype)[6:]}", "erfinv", torch.erfinv, In(torch.tensor([s * (1 - 2.0**-k) for k in range(2, 13) for s in (1, -1)], dtype=dtype)))
case("int32", "erfinv", torch.erfinv, In(torch.tensor([0, 1, -1, 2], dtype=torch.int32)))
case("bool", "erfinv", torch.erfinv, In(torch.tensor([True, False])))

write("elementwise")
