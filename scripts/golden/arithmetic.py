"""Writes packages/tensor/golden/arithmetic.json: functions of two and three tensors beyond those of ops.py, with gradients.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/arithmetic.py
"""
import math

import torch
from common import In, case, grad_case, refused, seed, values, write

seed(23)


def pairs(low=-3.0, high=3.0, dtype="float32"):
    v = lambda *shape: values(shape, dtype, low, high)
    return [
        ("equal shapes", In(v(3, 3)), In(v(3, 3))),
        ("a row", In(v(2, 3)), In(v(3))),
        ("outer", In(v(3, 1)), In(v(1, 4))),
        ("0-d and matrix", In(v()), In(v(2, 2))),
        ("both 0-d", In(v()), In(v())),
        ("empty", In(v(0, 3)), In(v(3))),
        ("transposed", In(v(3, 2), ("transpose", 0, 1)), In(v(2, 3))),
        ("narrow", In(v(4, 5), ("narrow", 1, 1, 3)), In(v(6, 3), ("narrow", 0, 2, 4))),
        ("vector of 37", In(v(37)), In(v(37))),
    ]


SPECIAL_A = [math.nan, 1.0, math.inf, math.inf, 0.0, -0.0, 1.0, 7.0, -7.0, 7.0, -7.0, 1.0, -1.0, -1.0, 2.0, 0.0, 6.0, -6.0, -0.5]
SPECIAL_B = [1.0, math.nan, -math.inf, math.inf, 0.0, 1.0, 0.0, 3.0, 3.0, -3.0, -3.0, math.inf, math.inf, -math.inf, -math.inf, 2.0, 3.0, 3.0, 2.0]
OPS = {
    "pow": (torch.pow, 0.2, 3.0), "remainder": (torch.remainder, -3, 3), "fmod": (torch.fmod, -3, 3),
    "floorDivide": (lambda a, b: torch.div(a, b, rounding_mode="floor"), -3, 3), "atan2": (torch.atan2, -3, 3),
}
for op, (fn, low, high) in OPS.items():
    for label, a, b in pairs(low, high):
        grad_case(label, op, fn, a, b)
    for label, a, b in pairs(low, high, "float64")[:2]:
        grad_case(f"{label} float64", op, fn, a, b)
    for dtype in (torch.float32, torch.float64):
        case(f"special values {str(dtype)[6:]}", op, fn, In(torch.tensor(SPECIAL_A, dtype=dtype)), In(torch.tensor(SPECIAL_B, dtype=dtype)))
    # Promotion
    for da in ("float32", "float64", "int32"):
        for db in ("float32", "int32", "bool"):
            nonzero = lambda x: torch.where(x == 0, torch.ones_like(x), x).abs()
            a, b = nonzero(values((3,), da).float()).to(getattr(torch, da)), nonzero(values((3,), db).float()).to(getattr(torch, db))
            case(f"{da} with {db}", op, fn, In(a), In(b))
            if da != db:
                case(f"{da} with 0-d {db}", op, fn, In(a), In(b[0].clone()))
    if op == "atan2":
        continue
    signed = torch.tensor([7, -7, 7, -7, 6, -6, 0, 1], dtype=torch.int32), torch.tensor([3, 3, -3, -3, 3, 3, 5, 2], dtype=torch.int32)
    if op != "pow":
        case("int32 signs", op, fn, In(signed[0]), In(signed[1]))
        for scalar in (2, 0.7, -1.5):
            grad_case(f"with the number {scalar}", op, fn, In(values((2, 3), "float32", -4, 4)), scalar)
            case(f"int32 with the number {scalar}", op, fn, In(signed[0]), scalar)
        if op == "remainder":
            case("the number 2 with", op, fn, 2, In(values((5,), "float32", 0.3, 2)))
for base in (2, 0.5, 1):
    grad_case(f"the number {base} to", "pow", torch.pow, base, In(values((2, 3))))
    case(f"the number {base} to int32", "pow", torch.pow, base, In(torch.tensor([0, 1, 3], dtype=torch.int32)))
grad_case("the number 0 to", "pow", torch.pow, 0, In(torch.tensor([0.0, 1.0, 2.5])))
grad_case("0 to", "pow", torch.pow, In(torch.tensor([0.0, 0.0, 0.0, 2.0])), In(torch.tensor([0.0, 1.0, 2.0, 0.0])))
for exponent in (0, 1, 2, 3, 0.5, -1, -0.5, 2.5):
    grad_case(f"exponent {exponent}", "pow", torch.pow, In(values((2, 3), "float32", 0.2, 2)), exponent)
case("int32 to negative int32", "pow", torch.pow, In(torch.tensor([1, -1, -1, 2], dtype=torch.int32)), In(torch.tensor([-3, -3, -2, -1], dtype=torch.int32)))

for mode in ("floor", "trunc"):
    fn = lambda a, b, o: torch.div(a, b, rounding_mode=o["roundingMode"])
    o = {"roundingMode": mode}
    grad_case(f"{mode} float32", "div", fn, In(values((2, 3), "float32", -9, 9)), In(values((3,), "float32", 0.5, 2)), o)
    case(f"{mode} float64", "div", fn, In(values((7,), "float64", -9, 9)), In(values((7,), "float64", 0.5, 2)), o)
    case(f"{mode} int32", "div", fn, In(signed[0]), In(signed[1]), o)
    case(f"{mode} int32 with float32", "div", fn, In(signed[0]), In(signed[1].float() * 0.7), o)
    case(f"{mode} int32 with a number", "div", fn, In(signed[0]), 2, o)

for op, fn in (("bitwiseAnd", torch.bitwise_and), ("bitwiseOr", torch.bitwise_or), ("bitwiseXor", torch.bitwise_xor)):
    case("int32", op, fn, In(values((3, 4), "int32")), In(values((4,), "int32")))
    case("bool", op, fn, In(values((3, 4), "bool")), In(values((4,), "bool")))
    case("int32 with bool", op, fn, In(values((5,), "int32")), In(values((5,), "bool")))
    case("int32 with a number", op, fn, In(values((5,), "int32")), 5)
    case("transposed", op, fn, In(values((3, 4), "int32"), ("transpose", 0, 1)), In(values((4, 3), "int32")))
case("int32", "bitwiseNot", torch.bitwise_not, In(values((5,), "int32")))
case("bool", "bitwiseNot", torch.bitwise_not, In(values((5,), "bool")))

for weight in (0, 0.3, 0.5, 0.8, 1):
    grad_case(f"weight {weight}", "lerp", torch.lerp, In(values((2, 3))), In(values((3,))), float(weight))
grad_case("weights", "lerp", torch.lerp, In(values((2, 3))), In(values((3,))), In(values((2, 1), "float32", 0, 1)))
for op, fn in (("addcmul", torch.addcmul), ("addcdiv", torch.addcdiv)):
    grad_case("broadcast", op, fn, In(values((2, 3))), In(values((3,))), In(values((2, 1), "float32", 0.5, 2)))
    grad_case("value", op, lambda x, a, b, o: fn(x, a, b, value=o["value"]), In(values((2, 3), "float64")), In(values((2, 3), "float64")), In(values((2, 3), "float64", 0.5, 2)), {"value": -0.3})

a = [1.0, 1.0, 1.0, math.nan, math.inf, math.inf, math.inf, 0.0]
b = [1.0, 1.000005, 1.1, math.nan, math.inf, -math.inf, 1.0, 1e-9]
for dtype in (torch.float32, torch.float64):
    x, y = In(torch.tensor(a, dtype=dtype)), In(torch.tensor(b, dtype=dtype))
    case(str(dtype)[6:], "isclose", torch.isclose, x, y)
    case(f"NaN equal {str(dtype)[6:]}", "isclose", lambda p, q, o: torch.isclose(p, q, equal_nan=True), x, y, {"equalNan": True})
    case(f"tolerant {str(dtype)[6:]}", "isclose", lambda p, q, o: torch.isclose(p, q, **o), x, y, {"rtol": 0.2, "atol": 0.01})
case("int32", "isclose", torch.isclose, In(torch.tensor([1, 2, 200000], dtype=torch.int32)), In(torch.tensor([1, 3, 200001], dtype=torch.int32)))
case("bool", "isclose", torch.isclose, In(torch.tensor([True, False])), In(torch.tensor([True, True])))
for op, fn in (("allclose", torch.allclose), ("equal", torch.equal)):
    case("same", op, fn, In(torch.tensor([1.0, 2.0])), In(torch.tensor([1.0, 2.0])))
    case("near", op, fn, In(torch.tensor([1.0, 2.0])), In(torch.tensor([1.0, 2.000001])))
    case("far", op, fn, In(torch.tensor([1.0, 2.0])), In(torch.tensor([1.0, 2.1])))
    case("NaN", op, fn, In(torch.tensor([math.nan])), In(torch.tensor([math.nan])))
    case("empty", op, fn, In(torch.zeros(0)), In(torch.zeros(0)))
case("other shape", "equal", torch.equal, In(torch.ones(2)), In(torch.ones(1, 2)))

# All three promote before anything is multiplied. (The gradients of addcdiv PyTorch takes through a quotient in the narrower dtype.)
for op, fn in (("addcmul", torch.addcmul), ("addcdiv", torch.addcdiv)):
    run = grad_case if op == "addcmul" else case
    v = lambda shape, dtype: In(values(shape, dtype, 0.5, 2.0))
    run("float64, float32, float32", op, fn, v((3,), "float64"), v((3,), "float32"), v((3,), "float32"))
    run("float32, float64, float32", op, fn, v((3,), "float32"), v((3,), "float64"), v((1,), "float32"))
    run("0-d float64, float32, float32", op, fn, v((), "float64"), v((3,), "float32"), v((3,), "float32"))
    run("float32, float32, 0-d float64", op, fn, v((3,), "float32"), v((3,), "float32"), v((), "float64"))
    run("int32, float64, 0-d float32", op, fn, In(values((3,), "int32")), v((3,), "float64"), v((), "float32"))
for low, high in ((1, math.inf), (-math.inf, 1)):
    case(f"int32, {low}, {high}", "clamp", lambda x, a, b: torch.clamp(x, a, b), In(values((4,), "int32")), low, high)

# Cases that were added later come last, so that the values above stay.
for label, a, b in [*pairs(-9, 9), *((f"{label} float64", a, b) for label, a, b in pairs(-9, 9, "float64")[:2])]:
    grad_case(label, "logaddexp", torch.logaddexp, a, b, twice=True)
for dtype in (torch.float32, torch.float64):
    ends = torch.tensor([0.0, -0.0, 1.0, -2.5, 90.0, -90.0, 800.0, -800.0, math.inf, -math.inf, math.nan], dtype=dtype)
    case(f"special values {str(dtype)[6:]}, all pairs", "logaddexp", torch.logaddexp, In(ends.reshape(-1, 1)), In(ends))
    grad_case(f"equal {str(dtype)[6:]}", "logaddexp", torch.logaddexp, *[In(torch.tensor([1.0, -3.0], dtype=dtype))] * 2, twice=True)
    grad_case(f"far apart {str(dtype)[6:]}", "logaddexp", torch.logaddexp, In(torch.tensor([30.0, -30.0], dtype=dtype)), In(torch.tensor([-30.0, 30.0], dtype=dtype)))
grad_case("float32 with float64", "logaddexp", torch.logaddexp, In(values((2, 3))), In(values((3,), "float64")))
grad_case("float32 with 0-d float64", "logaddexp", torch.logaddexp, In(values((2, 3))), In(values((), "float64")))
case("float64 with int32", "logaddexp", torch.logaddexp, In(values((3,), "float64")), In(values((3,), "int32")))
case("float32 with bool", "logaddexp", torch.logaddexp, In(values((3,))), In(values((3,), "bool")))
for dtype in ("int32", "bool"):
    refused(dtype, "logaddexp", torch.logaddexp, In(values((3,), dtype)), In(values((3,), dtype)))

write("arithmetic")
