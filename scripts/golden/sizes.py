"""Writes packages/tensor/golden/sizes.json: operations at the sizes where other kernels begin (KERNELS.md), with gradients, special values and views.
Inputs and results are large, so the file holds their seeds and sums (common.py).
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/sizes.py
"""
import math

import torch
import torch.nn.functional as F
import common
from common import Made, case, grad_case, write

torch.set_num_threads(1)
common.listed_max = 150
STRANGE = [(3, math.nan), (50, math.inf), (97, -math.inf), (101, -0.0)]
T = ("transpose", 0, 1)
v = lambda *shape, low=-1.0, high=1.0, dtype="float32", **more: Made(shape, dtype, low, high, **more)
index = lambda shape, below: Made(shape, "int32", 0, below)

# --- products: tiles, and b packed from 64 KiB on ---
for dtype in ("float32", "float64"):
    a, b = [lambda *shape, via=(), s=s: Made(shape, dtype, -s, s, via=via) for s in (0.5, 0.125)]
    grad_case(f"beyond tiles, {dtype}", "matmul", torch.matmul, a(9, 37), b(37, 41))
    grad_case(f"packed, {dtype}", "matmul", torch.matmul, a(70, 130), b(130, 150))
    grad_case(f"a few rows of a large matrix, {dtype}", "matmul", torch.matmul, a(5, 260), b(260, 300))
    grad_case(f"transposes, {dtype}", "matmul", torch.matmul, a(130, 70, via=(T,)), b(150, 130, via=(T,)))
    grad_case(f"a batch, {dtype}", "matmul", torch.matmul, a(3, 20, 33), b(3, 33, 17))
    grad_case(f"one row, {dtype}", "matmul", torch.matmul, a(1, 300), b(300, 90))
    grad_case(f"one column, {dtype}", "matmul", torch.matmul, a(90, 300), b(300, 1))
    grad_case(f"a layer, {dtype}", "linear", F.linear, a(40, 120), b(90, 120), b(90))

# --- convolutions: tiles over a padded image, with strides of 1; columns; groups; depthwise ---
conv = lambda x, w, b, o: F.conv2d(x, w, b, **o)
for label, x, w, o in [
    ("padded", (2, 5, 13, 17), (11, 5, 3, 3), {"padding": 1}),
    ("one channel", (3, 1, 20, 20), (16, 1, 3, 3), {}),
    ("a large window", (1, 3, 24, 19), (9, 3, 5, 7), {"padding": 2}),
    ("dilated", (1, 4, 18, 18), (8, 4, 3, 3), {"dilation": 2, "padding": 2}),
    ("strided", (2, 4, 17, 16), (10, 4, 3, 3), {"stride": 2, "padding": 1}),
    ("groups", (2, 8, 12, 12), (12, 4, 3, 3), {"groups": 2, "padding": 1}),
    ("depthwise", (2, 9, 14, 15), (9, 1, 3, 3), {"groups": 9, "padding": 1}),
    ("one by one", (2, 20, 9, 10), (17, 20, 1, 1), {}),
]:
    for dtype in ("float32", "float64"):
        m = lambda shape, s: Made(shape, dtype, -s, s)
        grad_case(f"{label}, {dtype}", "conv2d", conv, m(x, 0.25), m(w, 0.125), m((w[0],), 0.5), o)

# --- rows ---
for label, shape, dim in (("short rows", (30, 9), 1), ("rows", (5, 100), 1), ("more than is staged at once", (2, 2500), 1), ("columns", (40, 13), 0), ("in the middle", (3, 50, 7), 1)):
    for op, fn in (("softmax", torch.softmax), ("logSoftmax", torch.log_softmax)):
        grad_case(label, op, fn, v(*shape, low=-4.0, high=4.0), dim)
    grad_case(f"{label}, float64", "softmax", torch.softmax, v(*shape, dtype="float64"), dim)
    few = lambda: v(*shape)
    for op in ("sum", "mean", "amax", "amin"):
        fn = getattr(torch, op)
        grad_case(label, op, lambda x, d, fn=fn: fn(x, d), few(), dim)
        grad_case(f"{label}, float64", op, lambda x, d, fn=fn: fn(x, d), v(*shape, dtype="float64"), dim)
    for op in ("argmax", "argmin"):
        case(label, op, getattr(torch, op), few(), dim)
    grad_case(label, "var", lambda x, d: torch.var(x, d), few(), dim)
    grad_case(label, "prod", lambda x, d: torch.prod(x, d), v(*shape, low=0.96875, high=1.03125), dim)
    case(f"{label}, int32", "sum", lambda x, d: torch.sum(x, d), Made(shape, "int32", -1000, 1000), dim)
    case(f"{label}, int32", "amax", lambda x, d: torch.amax(x, d), Made(shape, "int32", -1000, 1000), dim)
    for descending in (False, True):
        for dtype in ("float32", "float64", "int32"):
            order = lambda x, d, o: torch.sort(x, dim=d, stable=True, **o)[1]
            low, high = (-50, 50) if dtype == "int32" else (-1.0, 1.0)
            case(f"{label}, {dtype}", "argsort", order, Made(shape, dtype, low, high), dim, {"descending": descending})
entropy = lambda x, t, r: F.cross_entropy(x, t.long(), reduction=r)
for n, classes in ((60, 11), (7, 90), (2, 2500)):
    for reduction in ("mean", "none"):
        grad_case(f"{n} of {classes} classes, {reduction}", "crossEntropy", entropy, v(n, classes, low=-4.0, high=4.0), index((n,), classes), reduction)
for rows, d in ((40, 7), (6, 50), (2, 2500)):
    norm = lambda x, n, w, b: F.layer_norm(x, (n,), w, b)
    grad_case(f"{rows} rows of {d}", "layerNorm", norm, v(rows, d), d, v(d), v(d))
    grad_case(f"far from 0, {rows} rows of {d}", "layerNorm", norm, v(rows, d, low=7.0, high=9.0), d, v(d), v(d))
batch = lambda x, mean, variance, w, b, o: F.batch_norm(x, mean, variance, w, b, True)
for label, shape in (("rows", (70, 13)), ("images", (3, 5, 9, 11)), ("long runs", (2, 3, 1503))):
    c = (shape[1],)
    grad_case(label, "batchNorm", batch, v(*shape), None, None, v(*c), v(*c), {"training": True})

# --- places ---
for dtype in ("float32", "float64", "int32", "bool"):
    low, high = (0, 2) if dtype == "bool" else (-50, 50)
    x = lambda *shape, via=(), dtype=dtype: Made(shape, dtype, low, high, via=via)
    run = case if dtype in ("int32", "bool") else grad_case
    for dims in ([0], [1], [0, 1]):
        run(f"{dtype}, {dims}", "flip", torch.flip, x(19, 23), dims)
    run(dtype, "tril", torch.tril, x(2, 31, 27), -1)
    run(dtype, "triu", torch.triu, x(2, 31, 27), 2)
    run(f"{dtype}, transposed", "contiguous", lambda x: x.contiguous(), x(37, 45, via=(T,)))
    run(f"{dtype}, permuted", "contiguous", lambda x: x.contiguous(), x(5, 18, 21, via=(("permute", [2, 0, 1]),)))
    run(f"{dtype}, columns", "cat", torch.cat, [x(21, 9), x(9, 21, via=(T,)), x(21, 40)], 1)
    run(f"{dtype}, rows", "indexSelect", lambda x, d, i: x.index_select(d, i.long()), x(11, 70), 0, index((20,), 11))
    run(f"{dtype}, columns", "indexSelect", lambda x, d, i: x.index_select(d, i.long()), x(9, 40), 1, index((90,), 40))
    run(dtype, "gather", lambda x, d, i: x.gather(d, i.long()), x(9, 40), 1, index((9, 90), 40))
    if dtype != "bool":
        run(dtype, "indexAdd", lambda x, d, i, y: x.index_add(d, i.long(), y), x(11, 30), 0, index((50,), 11), x(50, 30))
        run(dtype, "scatterAdd", lambda x, d, i, y: x.scatter_add(d, i.long(), y), x(9, 40), 1, index((9, 90), 40), x(9, 90))

# --- element by element, from 80 on in vectors ---
SPECIAL = {
    "exp": torch.exp, "log": torch.log, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan,
    "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "elu": F.elu, "erf": torch.erf, "expm1": torch.expm1, "log1p": torch.log1p, "atan": torch.atan,
    "relu": torch.relu, "abs": torch.abs, "sign": torch.sign, "round": torch.round, "rsqrt": torch.rsqrt, "sqrt": torch.sqrt, "log2": torch.log2, "exp2": torch.exp2,
}
for op, fn in SPECIAL.items():
    for dtype in ("float32", "float64"):
        low, high = (0.25, 3.25) if op in ("log", "rsqrt", "sqrt", "log2", "log1p") else (-1.25, 1.25)
        case(f"special values among 131, {dtype}", op, fn, Made((131,), dtype, low, high, at=STRANGE))
        grad_case(f"a view with gaps, {dtype}", op, fn, Made((13, 11, 2), dtype, low, high, via=(("select", 2, 1),)))
for op, fn in (("remainder", torch.remainder), ("fmod", torch.fmod), ("pow", torch.pow), ("atan2", torch.atan2), ("maximum", torch.maximum), ("div", torch.div)):
    for dtype in ("float32", "float64"):
        case(f"special values among 131, {dtype}", op, fn, Made((131,), dtype, 0.5, 2.0, at=STRANGE), Made((131,), dtype, 0.5, 2.0))
        grad_case(f"a row and a transpose, {dtype}", op, fn, Made((17, 90), dtype, 0.5, 2.0, via=(T,)), Made((17,), dtype, 0.5, 2.0))


# --- attention: more than one block of queries ---
def attention(q, k, x, o):
    """The formula of torch.nn.functional.scaled_dot_product_attention, which PyTorch has from 2.0 on."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if o.get("isCausal") else o.get("attnMask")
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ x


for label, (l, s), o in (("one block", (33, 41), {}), ("several blocks", (300, 470), {}), ("causal", (150, 150), {"isCausal": True})):
    grad_case(label, "scaledDotProductAttention", attention, v(1, 2, l, 8), v(1, 2, s, 8), v(1, 2, s, 5), o)

# Below all others: a seed is the number of inputs before it.
for label, (l, s), o in (
    ("a mask, several blocks", (150, 340), {"attnMask": Made((150, 340), "bool", 0, 2)}),
    ("a mask of each matrix, added", (40, 50), {"attnMask": v(2, 1, 40, 50)}),
    ("one mask of all rows", (70, 90), {"attnMask": Made((1, 90), "bool", 0, 2)}),
):
    grad_case(label, "scaledDotProductAttention", attention, v(2, 2, l, 8), v(2, 2, s, 8), v(2, 2, s, 6), o)
double = lambda *shape, **more: v(*shape, dtype="float64", **more)
grad_case("float64", "scaledDotProductAttention", attention, double(1, 2, 33, 8), double(1, 2, 41, 8), double(1, 2, 41, 5), {})
grad_case("float64, causal", "scaledDotProductAttention", attention, double(1, 2, 70, 8), double(1, 2, 70, 8), double(1, 2, 70, 5), {"isCausal": True})

# --- rows of float64, and what the rows above lack ---
for n, classes in ((60, 11), (2, 2500)):
    grad_case(f"{n} of {classes} classes, float64", "crossEntropy", entropy, double(n, classes, low=-4.0, high=4.0), index((n,), classes), "mean")
for rows, d in ((40, 7), (2, 2500)):
    grad_case(f"{rows} rows of {d}, float64", "layerNorm", norm, double(rows, d, low=7.0, high=9.0), d, double(d), double(d))
for label, shape in (("rows", (70, 13)), ("images", (3, 5, 9, 11))):
    c = (shape[1],)
    grad_case(f"{label}, float64", "batchNorm", batch, double(*shape), None, None, double(*c), double(*c), {"training": True})
group = lambda x, n, w, b: F.group_norm(x, n, w, b)
for label, shape, groups in (("images", (3, 12, 9, 11), 4), ("rows", (30, 48), 3), ("one group", (2, 5, 503), 1), ("each channel", (2, 7, 120), 7)):
    for dtype in ("float32", "float64"):
        m = lambda *shape: v(*shape, dtype=dtype)
        grad_case(f"{label}, {dtype}", "groupNorm", group, m(*shape), groups, m(shape[1]), m(shape[1]))
topk = lambda x, k, d, o: dict(zip(("values", "indices"), torch.topk(x, k, d, **o)))
for label, shape, dim, k in (("rows", (5, 100), 1, 7), ("a few of many", (2, 2500), 1, 20), ("columns", (90, 13), 0, 31), ("nearly all", (3, 400), 1, 390)):
    for largest in (True, False):
        for dtype in ("float32", "float64"):
            grad_case(f"{label}, {dtype}", "topk", topk, v(*shape, dtype=dtype), k, dim, {"largest": largest})
for label, shape, dim in (("rows", (5, 100), 1), ("a long row", (1, 2500), 1), ("columns", (90, 13), 0), ("in the middle", (3, 50, 7), 1)):
    for dtype in ("float32", "float64"):
        grad_case(f"{label}, {dtype}", "cumsum", torch.cumsum, v(*shape, dtype=dtype), dim)
        grad_case(f"{label}, {dtype}", "cumprod", torch.cumprod, v(*shape, low=0.96875, high=1.03125, dtype=dtype), dim)
        grad_case(f"{label}, {dtype}", "std", lambda x, d: torch.std(x, d), v(*shape, dtype=dtype), dim)
        grad_case(f"{label}, {dtype}", "logSumExp", lambda x, d: torch.logsumexp(x, d), v(*shape, dtype=dtype, low=-4.0, high=4.0), dim)
    case(f"{label}, int32", "cumsum", lambda x, d: torch.cumsum(x, d, dtype=torch.int32), Made(shape, "int32", -1000, 1000), dim)

# --- windows: maxima of pairs, planes that are staged one after the other ---
for label, shape, size, o in (
    ("pairs", (3, 4, 30, 34), 2, {}),
    ("an odd width", (2, 5, 31, 33), 2, {}),
    ("overlapping", (2, 6, 28, 28), 3, {"stride": 1, "padding": 1}),
    ("strided, padded", (2, 6, 29, 31), 3, {"stride": 2, "padding": 1}),
):
    for dtype in ("float32", "float64"):
        image = lambda: v(*shape, dtype=dtype)
        grad_case(f"{label}, {dtype}", "maxPool2d", lambda x, n, o: F.max_pool2d(x, n, **o), image(), size, o)
        grad_case(f"{label}, {dtype}", "avgPool2d", lambda x, n, o: F.avg_pool2d(x, n, **o), image(), size, o)
        case(f"{label}, {dtype}", "maxPool2dWithIndices", lambda x, n, o: F.max_pool2d(x, n, return_indices=True, **o), image(), size, o)

write("sizes")
