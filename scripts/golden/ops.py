"""Writes packages/tensor/golden/ops.json: what PyTorch computes for every raw operation, over broadcasting, views, empty and 0-d tensors,
promotion and special values. Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/ops.py
"""
import math

import torch
import torch.nn.functional as F
from common import DTYPES, NAMES, SPECIAL, In, case, in_place, layouts, seed, values, write

seed(20)

# --- unary ---
UNARY = {
    "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "relu": torch.relu, "abs": torch.abs, "sign": torch.sign, "clone": torch.clone,
}
for op, fn in UNARY.items():
    positive = op in ("log", "sqrt")
    for label, x in layouts("float32", 0.01 if positive else -2.0, 3.0):
        case(f"{label} float32", op, fn, x)
    case("float64", op, fn, In(values((2, 3), "float64", 0.01 if positive else -2.0, 3.0), ("transpose", 0, 1)))
    case("int32", op, fn, In(torch.tensor([4, 1, 0, 9, -2], dtype=torch.int32)))
    if op not in ("neg", "abs", "relu"):
        case("bool", op, fn, In(torch.tensor([True, False])))
    for dtype in ("float32", "float64"):
        special = [x for x in SPECIAL if not (op in ("sin", "cos") and abs(x) > 1e30)]
        case(f"special values {dtype}", op, fn, In(torch.tensor(special, dtype=DTYPES[dtype])))

for label, x in layouts("float32", 0.1, 2.0):
    case(f"{label} cubed", "pow", torch.pow, x, 3)
for exponent in (0, 1, 2, 0.5, -1, -0.5, -2, 2.5):
    case(f"exponent {exponent}", "pow", torch.pow, In(values((2, 4), "float32", 0.1, 3.0)), exponent)
    case(f"special values, exponent {exponent}", "pow", torch.pow, In(torch.tensor(SPECIAL, dtype=torch.float64)), exponent)
case("int32 squared", "pow", torch.pow, In(values((5,), "int32")), 2)
case("int32 overflows", "pow", torch.pow, In(torch.tensor([3, 7, -5], dtype=torch.int32)), 25)
case("int32 to a fraction", "pow", torch.pow, In(torch.tensor([4, 9], dtype=torch.int32)), 0.5)
for label, x in layouts("float32"):
    case(f"{label} both bounds", "clamp", torch.clamp, x, -0.5, 0.75)
case("min only", "clamp", lambda x, a, b: torch.clamp(x, min=a), In(values((5,))), 0.5, None)
case("max only", "clamp", lambda x, a, b: torch.clamp(x, max=b), In(values((5,))), None, 0.5)
case("min above max", "clamp", torch.clamp, In(values((5,))), 1.0, -1.0)
case("special values", "clamp", torch.clamp, In(torch.tensor(SPECIAL)), -2.0, 2.0)
case("int32", "clamp", torch.clamp, In(values((5,), "int32")), -1, 2)
for source in DTYPES:
    for target in DTYPES:
        base = torch.tensor([0, 1, 3, -2], dtype=DTYPES[source]) if source in ("int32", "bool") else torch.tensor([0.0, 1.75, -2.5, 0.25], dtype=DTYPES[source])
        case(f"{source} to {target}", "to", lambda x, d: x.to(DTYPES[d]), In(base), target)
        case(f"{source} to {target}, transposed", "to", lambda x, d: x.to(DTYPES[d]), In(values((2, 3), source), ("transpose", 0, 1)), target)
for label, x in layouts("float32"):
    case(label, "contiguous", lambda t: t.contiguous(), x)

# --- binary and comparisons ---
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum}
COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
PAIRS = [
    ("equal shapes", In(values((3, 3))), In(values((3, 3)))),
    ("a row", In(values((2, 3))), In(values((3,)))),
    ("a column", In(values((2, 1))), In(values((2, 3)))),
    ("outer", In(values((3, 1))), In(values((1, 4)))),
    ("three dimensions", In(values((2, 1, 3))), In(values((4, 1)))),
    ("0-d and matrix", In(values(())), In(values((2, 2)))),
    ("both 0-d", In(values(())), In(values(()))),
    ("one element and vector", In(values((1,))), In(values((3,)))),
    ("empty", In(values((0, 3))), In(values((3,)))),
    ("empty by broadcasting", In(values((1, 3))), In(values((0, 1)))),
    ("transposed", In(values((3, 2)), ("transpose", 0, 1)), In(values((2, 3)))),
    ("both transposed", In(values((3, 2)), ("transpose", 0, 1)), In(values((3, 2)), ("transpose", 0, 1))),
    ("narrow", In(values((4, 5)), ("narrow", 1, 1, 3)), In(values((6, 3)), ("narrow", 0, 2, 4))),
    ("expanded", In(values((3, 1)), ("expand", [3, 4])), In(values((4,)), ("expand", [3, 4]))),
    ("vector of 37", In(values((37,))), In(values((37,)))),
]
SPECIAL_A = torch.tensor([math.nan, 1.0, math.inf, math.inf, 0.0, -0.0, 1.0, 3e38])
SPECIAL_B = torch.tensor([1.0, math.nan, -math.inf, math.inf, 0.0, 1.0, 0.0, 3e38])
for op, fn in {**BINARY, **COMPARE}.items():
    for label, a, b in PAIRS:
        case(label, op, fn, a, b)
    case("special values", op, fn, In(SPECIAL_A), In(SPECIAL_B))
    case("float64", op, fn, In(values((2, 3), "float64")), In(values((3,), "float64")))
    case("equal elements", op, fn, In(torch.tensor([1.0, 2.0, 3.0])), In(torch.tensor([1.0, 3.0, 2.0])))
    # Promotion: every pair of dtypes, with dimensions and with one side 0-d.
    for da in DTYPES:
        for db in DTYPES:
            if op == "sub" and "bool" in (da, db):
                continue
            a, b = values((3,), da), values((3,), db)
            b = torch.where(b == 0, torch.ones_like(b), b)
            case(f"{da} with {db}", op, fn, In(a), In(b))
            if da != db:
                case(f"{da} with 0-d {db}", op, fn, In(a), In(b[0].clone()))
                case(f"0-d {da} with 0-d {db}", op, fn, In(a[0].clone()), In(b[0].clone()))
    if op not in ("maximum", "minimum"):
        for dtype in DTYPES:
            for scalar in (2, 0.5) if (op, dtype) != ("sub", "bool") else ():
                case(f"{dtype} with the number {scalar}", op, fn, In(values((2, 2), dtype)), scalar)
        case("0-d with a number", op, fn, In(values(())), 3)
        case("transposed with a number", op, fn, In(values((2, 3)), ("transpose", 0, 1)), 3)
for op, fn in (("sub", lambda a, b: a - b), ("div", lambda a, b: a / b)):
    for dtype in ("float32", "float64", "int32"):
        for scalar in (2, 0.5):
            x = values((3,), dtype)
            case(f"the number {scalar} with {dtype}", op, fn, scalar, In(torch.where(x == 0, torch.ones_like(x), x)))
case("int32 wraps", "add", torch.add, In(torch.tensor([2**31 - 1], dtype=torch.int32)), In(torch.tensor([1], dtype=torch.int32)))
case("int32 wraps", "mul", torch.mul, In(torch.tensor([2**30 + 3], dtype=torch.int32)), In(torch.tensor([2**30 + 5], dtype=torch.int32)))

mask = lambda *shape: values(shape, "bool")
for label, c, a, b in [
    ("equal shapes", In(mask(2, 3)), In(values((2, 3))), In(values((2, 3)))),
    ("all broadcast", In(mask(2, 1)), In(values((3,))), In(values((4, 1, 1)))),
    ("0-d condition", In(torch.tensor(True)), In(values((2,))), In(values((2,)))),
    ("transposed", In(mask(3, 2), ("transpose", 0, 1)), In(values((2, 3))), In(values((3, 2)), ("transpose", 0, 1))),
    ("empty", In(mask(0,)), In(values((0,))), In(values((1,)))),
    ("float64", In(mask(4)), In(values((4,), "float64")), In(values((4,), "float64"))),
    ("bool", In(mask(4)), In(mask(4)), In(mask(4))),
    ("NaN on the side not taken", In(torch.tensor([True, False])), In(torch.tensor([1.0, math.nan])), In(torch.tensor([math.nan, 2.0]))),
]:
    case(label, "where", torch.where, c, a, b)

# --- reductions ---
REDUCED = [
    ("0-d", In(values(())), [None, 0, -1]),
    ("vector", In(values((7,))), [None, 0, -1]),
    ("matrix", In(values((3, 4))), [None, 0, 1, -1, [0, 1]]),
    ("3-d", In(values((2, 3, 4))), [None, 0, 1, 2, [0, 2], [1, 2], [-1, 0], [0, 1, 2]]),
    ("transposed", In(values((3, 4)), ("transpose", 0, 1)), [None, 0, 1]),
    ("permuted", In(values((2, 3, 4)), ("permute", [1, 2, 0])), [0, 1, [0, 2]]),
    ("expanded", In(values((3, 1)), ("expand", [3, 4])), [None, 0, 1]),
    ("narrow", In(values((4, 5)), ("narrow", 1, 1, 3)), [None, 0, 1]),
    ("extent 1", In(values((1, 4))), [0, 1]),
    ("float64", In(values((3, 4), "float64")), [None, 0, 1]),
    ("NaN", In(torch.tensor([[1.0, math.nan, 3.0], [math.inf, 2.0, -math.inf]])), [None, 0, 1]),
    ("ties", In(torch.tensor([[2.0, 2.0, 1.0], [2.0, 3.0, 3.0]])), [None, 0, 1]),
    ("int32", In(values((3, 4), "int32")), [None, 0, 1]),
    ("bool", In(values((3, 4), "bool")), [None, 0, 1]),
    ("empty", In(values((0, 3))), [None, 0, 1]),
    ("empty the other way", In(values((3, 0))), [None, 0, 1]),
]


def reduction(op):
    def run(x, dims, keepdim):
        if op == "argmax":
            return torch.argmax(x, dims, keepdim)
        if dims is None and op == "amax":
            return torch.amax(x, [], keepdim)
        dims = list(range(x.dim())) if dims is None else dims
        return getattr(torch, op)(x, dims, keepdim)

    return run


for label, x, choices in REDUCED:
    for dims in choices:
        for keepdim in (False, True):
            for op in ("sum", "mean", "amax", "argmax"):
                kind = NAMES[x.base.dtype]
                if op == "mean" and kind in ("int32", "bool"):
                    continue
                if op == "argmax" and (isinstance(dims, list) or kind == "bool" or (dims is None and keepdim)):
                    continue
                # On an empty dimension, and on 'amax without dims' of an empty tensor, PyTorch refuses: tested as errors.
                reduced = x.tensor().shape if dims is None else [x.tensor().shape[d] for d in ([dims] if isinstance(dims, int) else dims)] if x.tensor().dim() else []
                if op in ("amax", "argmax") and 0 in list(reduced):
                    continue
                case(f"{label}, dims {dims}, keepdim {keepdim}", op, reduction(op), x, dims, keepdim)

# --- matmul ---
MATMUL = [
    ("vectors", In(values((4,))), In(values((4,)))),
    ("matrices", In(values((2, 3))), In(values((3, 4)))),
    ("matrix and vector", In(values((2, 3))), In(values((3,)))),
    ("vector and matrix", In(values((3,))), In(values((3, 4)))),
    ("one by one", In(values((1, 1))), In(values((1, 1)))),
    ("first transposed", In(values((3, 2)), ("transpose", 0, 1)), In(values((3, 4)))),
    ("second transposed", In(values((2, 3))), In(values((4, 3)), ("transpose", 0, 1))),
    ("both transposed", In(values((3, 2)), ("transpose", 0, 1)), In(values((4, 3)), ("transpose", 0, 1))),
    ("narrow", In(values((4, 6)), ("narrow", 1, 2, 3)), In(values((5, 4)), ("narrow", 0, 1, 3))),
    ("expanded", In(values((1, 3)), ("expand", [2, 3])), In(values((3, 1)), ("expand", [3, 4]))),
    ("no rows", In(values((0, 3))), In(values((3, 4)))),
    ("no columns", In(values((2, 3))), In(values((3, 0)))),
    ("nothing to sum", In(values((2, 0))), In(values((0, 4)))),
    ("empty vectors", In(values((0,))), In(values((0,)))),
    ("batch", In(values((5, 2, 3))), In(values((5, 3, 4)))),
    ("batch, second transposed", In(values((2, 2, 3))), In(values((2, 4, 3)), ("transpose", 1, 2))),
    ("batch and matrix", In(values((5, 2, 3))), In(values((3, 4)))),
    ("matrix and batch", In(values((2, 3))), In(values((5, 3, 4)))),
    ("batch and vector", In(values((5, 2, 3))), In(values((3,)))),
    ("vector and batch", In(values((3,))), In(values((5, 3, 4)))),
    ("batches broadcast", In(values((2, 1, 2, 3))), In(values((3, 3, 2)))),
    ("batches broadcast crosswise", In(values((2, 1, 2, 3))), In(values((1, 3, 3, 2)))),
    ("batch of 1", In(values((1, 2, 3))), In(values((4, 3, 2)))),
    ("batch permuted", In(values((2, 3, 4)), ("permute", [1, 0, 2])), In(values((4, 2)))),
    ("empty batch", In(values((0, 2, 3))), In(values((0, 3, 4)))),
    ("heads: 4-d permuted", In(values((2, 3, 2, 4)), ("permute", [0, 2, 1, 3])), In(values((2, 3, 2, 4)), ("permute", [0, 2, 3, 1]))),
    ("float64", In(values((2, 3), "float64")), In(values((3, 2), "float64"))),
    ("int32", In(values((2, 3), "int32")), In(values((3, 2), "int32"))),
    ("17 by 19 by 23", In(values((17, 19))), In(values((19, 23)))),
]
for label, a, b in MATMUL:
    case(label, "matmul", torch.matmul, a, b)
case("batch", "bmm", torch.bmm, In(values((3, 2, 4))), In(values((3, 4, 2))))
case("transposed", "bmm", torch.bmm, In(values((3, 4, 2)), ("transpose", 1, 2)), In(values((3, 4, 2))))

# --- views ---
for op, fn in (("view", lambda x, s: x.view(s)), ("reshape", lambda x, s: x.reshape(s))):
    for shape in ([6], [3, 2], [2, -1], [1, 2, 3], [-1], [2, 1, 3, 1]):
        case(f"dense to {shape}", op, fn, In(values((2, 3))), shape)
    case("0-d to [1, 1]", op, fn, In(values(())), [1, 1])
    case("one element to 0-d", op, fn, In(values((1, 1))), [])
    case("empty", op, fn, In(values((0, 3))), [3, 0])
    case("strides that allow it", op, fn, In(values((4, 6)), ("narrow", 0, 1, 2)), [2, 2, 3])
    case("splitting a strided dimension", op, fn, In(values((4, 6)), ("transpose", 0, 1)), [2, 3, 4])
    case("expanded stays", op, fn, In(values((3, 1)), ("expand", [3, 4])), [3, 2, 2])
for shape in ([6], [2, 3], [-1]):
    case(f"transposed to {shape}", "reshape", lambda x, s: x.reshape(s), In(values((2, 3)), ("transpose", 0, 1)), shape)
case("permuted flat", "reshape", lambda x, s: x.reshape(s), In(values((2, 3, 4)), ("permute", [2, 0, 1])), [-1])
for dims in ((0, 1), (1, 0), (-1, -2), (0, 0), (0, 2)):
    case(f"dims {dims}", "transpose", torch.transpose, In(values((2, 3, 4))), *dims)
for dims in ([2, 0, 1], [0, 1, 2], [-1, -2, -3]):
    case(f"dims {dims}", "permute", lambda x, d: x.permute(d), In(values((2, 3, 4))), dims)
case("0-d", "permute", lambda x, d: x.permute(d), In(values(())), [])
for shape, base in (([2, 3], (1, 3)), ([2, 3], (3,)), ([4, -1, 3], (2, 1)), ([2, 2], ()), ([0, 3], (1, 3)), ([-1, 4], (3, 1))):
    case(f"{list(base)} to {shape}", "expand", lambda x, s: x.expand(s), In(values(base)), shape)
for dim in (None, 0, 1, -1):
    case(f"dim {dim}", "squeeze", lambda x, d: x.squeeze() if d is None else x.squeeze(d), In(values((1, 3, 1))), dim)
case("0-d", "squeeze", lambda x, d: x.squeeze(d), In(values(())), 0)
for dim in (0, 1, 2, -1, -3):
    case(f"dim {dim}", "unsqueeze", torch.unsqueeze, In(values((2, 3)), ("transpose", 0, 1)), dim)
for args in ((0, 1, 2), (1, 0, 3), (-1, 2, 1), (0, 4, 0), (0, -2, 2)):
    case(f"{args}", "narrow", lambda x, d, s, n: x.narrow(d, s, n), In(values((4, 3))), *args)
for args in ((0, 1), (1, -1), (-1, 0)):
    case(f"{args}", "select", lambda x, d, i: x.select(d, i), In(values((4, 3))), *args)

# --- joining ---
CAT = [
    ("rows", [In(values((2, 3))), In(values((1, 3)))], 0),
    ("columns", [In(values((2, 3))), In(values((2, 1)))], 1),
    ("last", [In(values((2, 2, 1))), In(values((2, 2, 3)))], -1),
    ("transposed", [In(values((3, 2)), ("transpose", 0, 1)), In(values((2, 3)))], 0),
    ("one", [In(values((2, 3)))], 0),
    ("legacy empty", [In(values((0,))), In(values((2, 3)))], 1),
    ("empty part", [In(values((0, 3))), In(values((2, 3)))], 0),
    ("promotes", [In(values((2,), "int32")), In(values((2,)))], 0),
    ("promotes to float64", [In(values((2,))), In(values((2,), "float64"))], 0),
    ("bool", [In(values((2,), "bool")), In(values((3,), "bool"))], 0),
]
for label, parts, dim in CAT:
    case(label, "cat", torch.cat, parts, dim)
for dim in (0, 1, 2, -1):
    case(f"dim {dim}", "stack", torch.stack, [In(values((2, 3))), In(values((3, 2)), ("transpose", 0, 1)), In(values((2, 3)))], dim)
case("0-d", "stack", torch.stack, [In(values(())), In(values(()))], 0)

# --- indices and losses ---
index = lambda *v: In(torch.tensor(v, dtype=torch.int32))
embed = lambda w, i: F.embedding(i.long(), w)
case("vector", "embedding", embed, In(values((5, 3))), index(0, 4, 2, 2))
case("matrix of indices", "embedding", embed, In(values((5, 3))), In(torch.tensor([[1, 0], [3, 3]], dtype=torch.int32)))
case("transposed indices", "embedding", embed, In(values((5, 3))), In(torch.tensor([[1, 0, 2], [3, 3, 4]], dtype=torch.int32), ("transpose", 0, 1)))
case("transposed weight", "embedding", embed, In(values((3, 5)), ("transpose", 0, 1)), index(0, 4))
case("0-d index", "embedding", embed, In(values((5, 3))), In(torch.tensor(2, dtype=torch.int32)))
case("no indices", "embedding", embed, In(values((5, 3))), In(torch.zeros(0, dtype=torch.int32)))
case("float64", "embedding", embed, In(values((5, 3), "float64")), index(1, 1))


def embed_backward(grad, indices, rows):
    weight = torch.zeros(rows, grad.shape[-1], dtype=grad.dtype, requires_grad=True)
    return torch.autograd.grad(F.embedding(indices.long(), weight), weight, grad)[0]


case("repeated", "embeddingBackward", embed_backward, In(values((4, 3))), index(0, 4, 2, 2), 5)
case("matrix of indices", "embeddingBackward", embed_backward, In(values((2, 2, 3))), In(torch.tensor([[1, 0], [3, 3]], dtype=torch.int32)), 4)
case("strided gradient", "embeddingBackward", embed_backward, In(values((3, 2)), ("transpose", 0, 1)), index(1, 1), 3)
case("no indices", "embeddingBackward", embed_backward, In(values((0, 3))), In(torch.zeros(0, dtype=torch.int32)), 2)

for op, fn in (("softmax", torch.softmax), ("logSoftmax", torch.log_softmax)):
    for dim in (0, 1, -1):
        case(f"dim {dim}", op, fn, In(values((2, 3, 4), "float32", -5, 5)), dim)
    case("0-d", op, fn, In(values(())), 0)
    case("empty", op, fn, In(values((0, 3))), 1)
    case("empty dim", op, fn, In(values((2, 0))), 1)
    case("large", op, fn, In(torch.tensor([[1000.0, 1001.0, 1002.0], [-1000.0, 0.0, 1000.0]])), 1)
    case("minus infinity", op, fn, In(torch.tensor([[-math.inf, 0.0, 1.0]])), 1)
    case("NaN", op, fn, In(torch.tensor([[math.nan, 0.0], [1.0, 2.0]])), 1)
    case("transposed", op, fn, In(values((4, 3)), ("transpose", 0, 1)), 1)
    case("float64", op, fn, In(values((2, 3), "float64")), 1)
    case("37 classes", op, fn, In(values((2, 37), "float32", -5, 5)), 1)

for reduce in ("mean", "sum", "none"):
    nll = lambda x, t, r: F.nll_loss(x, t.long(), reduction=r)
    entropy = lambda x, t, r: F.cross_entropy(x, t.long(), reduction=r)
    case(reduce, "nllLoss", nll, In(values((4, 3), "float32", -3, 0)), index(0, 2, 1, 1), reduce)
    case(f"{reduce}, float64, transposed", "nllLoss", nll, In(values((3, 4), "float64", -3, 0), ("transpose", 0, 1)), index(0, 2, 1, 1), reduce)
    case(f"{reduce}, no rows", "nllLoss", nll, In(values((0, 3))), In(torch.zeros(0, dtype=torch.int32)), reduce)
    case(reduce, "crossEntropy", entropy, In(values((4, 3), "float32", -3, 3)), index(0, 2, 1, 1), reduce)
    case(f"{reduce}, float64", "crossEntropy", entropy, In(values((4, 3), "float64", -3, 3)), index(0, 2, 1, 1), reduce)
    case(f"{reduce}, large", "crossEntropy", entropy, In(torch.tensor([[1000.0, 0.0], [0.0, -1000.0]])), index(0, 1), reduce)


def nll_backward(grad, target, classes):
    x = torch.zeros(target.shape[0], classes, dtype=grad.dtype, requires_grad=True)
    return torch.autograd.grad(F.nll_loss(x, target.long(), reduction="none" if grad.dim() else "sum"), x, grad)[0]


case("none", "nllLossBackward", nll_backward, In(values((3,))), index(0, 2, 2), 4)
case("sum", "nllLossBackward", nll_backward, In(values(())), index(0, 2, 2), 4)
case("strided gradient", "nllLossBackward", nll_backward, In(values((3, 2)), ("select", 1, 1)), index(0, 2, 1), 3)

to_shape = lambda x, s: x.sum_to_size(s) if s else x.sum()
for base, shape in (((2, 3), [3]), ((2, 3), [1, 3]), ((2, 3), [2, 1]), ((2, 3), []), ((2, 3), [2, 3]), ((4, 2, 3), [2, 1]), ((4, 2, 3), [1, 1, 1]), ((0, 3), [3])):
    case(f"{list(base)} to {shape}", "sumToShape", to_shape, In(values(base)), shape)
case("transposed", "sumToShape", to_shape, In(values((3, 2)), ("transpose", 0, 1)), [3])

# --- in place ---
TARGETS = [
    ("dense", lambda d: In(values((2, 3), d))),
    ("transposed", lambda d: In(values((3, 2), d), ("transpose", 0, 1))),
    ("narrow", lambda d: In(values((4, 3), d), ("narrow", 0, 1, 2))),
    ("strided inside", lambda d: In(values((2, 5), d), ("narrow", 1, 1, 3))),
]
ARGUMENTS = [
    ("same shape", lambda d: In(values((2, 3), d, 0.5, 2))),
    ("a row", lambda d: In(values((3,), d, 0.5, 2))),
    ("a column", lambda d: In(values((2, 1), d, 0.5, 2))),
    ("0-d", lambda d: In(values((), d, 0.5, 2))),
    ("transposed", lambda d: In(values((3, 2), d, 0.5, 2), ("transpose", 0, 1))),
]
IN_PLACE = {
    "add_": lambda x, y: x.add_(y), "sub_": lambda x, y: x.sub_(y), "mul_": lambda x, y: x.mul_(y), "div_": lambda x, y: x.div_(y),
    "copy_": lambda x, y: x.copy_(y),
}
for op, fn in IN_PLACE.items():
    for target, x in TARGETS:
        for argument, y in ARGUMENTS:
            in_place(f"{target} with {argument}", op, fn, x("float32"), y("float32"))
        if op != "copy_":
            in_place(f"{target} with a number", op, fn, x("float32"), 1.5)
    in_place("float64", op, fn, In(values((2, 3), "float64")), In(values((3,), "float64", 0.5, 2)))
    in_place("float32 with float64", op, fn, In(values((3,))), In(values((3,), "float64", 0.5, 2)))
    in_place("float32 with int32", op, fn, In(values((3,))), In(torch.tensor([1, 2, 3], dtype=torch.int32)))
    if op not in ("div_",):
        in_place("int32", op, fn, In(values((3,), "int32")), In(values((3,), "int32")))
    in_place("empty", op, fn, In(values((0, 3))), In(values((3,))))
for op, fn in (("add_", lambda x, y, a: x.add_(y, alpha=a)), ("sub_", lambda x, y, a: x.sub_(y, alpha=a))):
    for target, x in TARGETS:
        for argument, y in ARGUMENTS:
            in_place(f"{target} with {argument}, alpha", op, fn, x("float32"), y("float32"), -0.1)
    in_place("int32, alpha", op, fn, In(values((3,), "int32")), In(values((3,), "int32")), 3)
    in_place("float64, alpha", op, fn, In(values((3,), "float64")), In(values((3,), "float64")), 0.3)
    in_place("a number, alpha", op, fn, In(values((3,))), 2, 0.25)
in_place("to int32", "copy_", IN_PLACE["copy_"], In(values((3,), "int32")), In(torch.tensor([1.75, -2.5, 0.0])))
in_place("to bool", "copy_", IN_PLACE["copy_"], In(values((3,), "bool")), In(torch.tensor([1.75, -2.5, 0.0])))
for dtype in DTYPES:
    for target, x in TARGETS:
        in_place(f"{target} {dtype}", "fill_", lambda t, v: t.fill_(v), x(dtype), 3)
    in_place(dtype, "zero_", lambda t: t.zero_(), In(values((2, 3), dtype), ("transpose", 0, 1)))

write("ops")
