"""Writes packages/tensor/golden/edges.json: operations at the edges of what they are defined on, with gradients: kinks, zeros, infinities, NaN, repeated
indices, too few elements, overflow, and arguments that PyTorch refuses. Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/edges.py
"""
import math

import torch
import torch.nn.functional as F
from common import DTYPES, In, case, grad_case, in_place, refused, seed, values, write

seed(26)
inf, nan = math.inf, math.nan
t = lambda *v, dtype="float32": In(torch.tensor(v, dtype=DTYPES[dtype]))
d = lambda *v: t(*v, dtype="float64")
i = lambda *v: In(torch.tensor(v, dtype=torch.int32))
BOTH = ("float32", "float64")

# --- losses ---
SNAKE = {"posWeight": "pos_weight", "labelSmoothing": "label_smoothing", "logTarget": "log_target"}


def loss(fn):
    def call(*args):
        *tensors, o = args
        o = {"reduction": o} if isinstance(o, str) else o or {}
        tensors = [x.long() if x.dtype == torch.int32 else x for x in tensors]
        return fn(*tensors, **{SNAKE.get(k, k): x for k, x in o.items()})

    return call


for dtype in BOTH:
    v = lambda *x: t(*x, dtype=dtype)
    bce = loss(F.binary_cross_entropy)
    p, y = v(0, 0, 0, 1, 1, 1, 0.5, 1e-20), v(0, 0.5, 1, 0, 0.5, 1, 1, 1)
    grad_case(f"0 and 1, {dtype}", "bceLoss", bce, p, y, "none")
    grad_case(f"0 and 1, the mean, {dtype}", "bceLoss", bce, p, y, None)
    grad_case(f"0 and 1, weighted, {dtype}", "bceLoss", bce, p, y, {"weight": v(2), "reduction": "sum"})
    if dtype == "float32":  # PyTorch adds 1e-12 in the second derivative
        grad_case(f"within, twice, {dtype}", "bceLoss", bce, v(0.25, 0.5, 0.9), v(0, 0.5, 1), "none", twice=True)
    grad_case(f"0 and 1, {dtype}", "binaryCrossEntropy", lambda p, y: F.binary_cross_entropy(p, y, reduction="none"), p, y)
    for x in (-0.1, 1.1, nan, 1 + 1e-6, -inf):
        refused(f"{x}, {dtype}", "bceLoss", bce, v(0.5, x), v(1, 1), None)
    logits = v(inf, -inf, 0, 500, -500, nan, 3e38 if dtype == "float32" else 1e300)
    grad_case(f"ends, {dtype}", "bceWithLogits", loss(F.binary_cross_entropy_with_logits), logits, v(0, 1, 0.5, 1, 0, 0, 0), "none")
    grad_case(f"ends, positive weight, {dtype}", "bceWithLogits", loss(F.binary_cross_entropy_with_logits), logits, v(0, 1, 0.5, 1, 0, 0, 0), {"posWeight": v(2), "reduction": "none"})
    for op, fn in (("huberLoss", F.huber_loss), ("smoothL1Loss", F.smooth_l1_loss), ("mseLoss", F.mse_loss), ("l1Loss", F.l1_loss)):
        x, y = v(inf, -inf, inf, nan, 1, -1, 0, 1e20, 2), v(0, 0, inf, 0, 0, 0, 0, 0, -inf)
        grad_case(f"ends, {dtype}", op, loss(fn), x, y, "none")
        # At |d| = 1 PyTorch's second derivatives are of one side; ours as well.
        grad_case(f"twice, {dtype}", op, loss(fn), v(3, -3, 0.5, -0.25), v(0, 0, 0, 0), "none", twice=True)
    grad_case(f"beta infinite, {dtype}", "smoothL1Loss", loss(F.smooth_l1_loss), v(3, -2), v(1, 0), {"beta": inf, "reduction": "none"})
    grad_case(f"beta 0, {dtype}", "smoothL1Loss", loss(F.smooth_l1_loss), v(3, inf, -1), v(1, 0, 0), {"beta": 0.0, "reduction": "none"})
    grad_case(f"delta infinite, {dtype}", "huberLoss", loss(F.huber_loss), v(3, -2, 0), v(1, 0, 0), {"delta": inf, "reduction": "none"})
    gaussian = loss(F.gaussian_nll_loss)
    grad_case(f"variances at the ends, {dtype}", "gaussianNllLoss", gaussian, v(1, 1, 1, 2, 2), v(0, 0, 0, 2, 2), v(0, 1e-7, inf, nan, -0.0), {"reduction": "none"})
    for x in (-1e-9, -inf, -1):
        refused(f"variance {x}, {dtype}", "gaussianNllLoss", gaussian, v(1, 1), v(0, 0), v(1, x), {})
    # The gradient of the target 0 is PyTorch's NaN: see KERNELS.md.
    case(f"ends, {dtype}", "klDiv", loss(F.kl_div), v(-inf, -1, -inf, -1, nan), v(0, 0, 0.5, -0.5, 0), "none")
    case(f"ends, logarithms, {dtype}", "klDiv", loss(F.kl_div), v(-inf, -1, -1), v(-inf, -inf, 0), {"logTarget": True, "reduction": "none"})
    rows = In(torch.tensor([[-inf, 1.0], [-inf, 1.0], [0.5, 2.0]], dtype=DTYPES[dtype]))
    grad_case(f"minus infinity, {dtype}", "crossEntropy", loss(F.cross_entropy), rows, i(0, 1, 1), "none")
    grad_case(f"minus infinity, smoothed, {dtype}", "crossEntropy", loss(F.cross_entropy), rows, i(0, 1, 1), {"labelSmoothing": 0.1, "reduction": "none"})
    shares = In(torch.tensor([[0, 1.0], [0.5, 0.5], [0.25, 0.75]], dtype=DTYPES[dtype]))
    grad_case(f"minus infinity, probabilities, {dtype}", "crossEntropy", loss(F.cross_entropy), rows, shares, "none")
    wild = In(torch.tensor([[-inf, nan], [-inf, 1.0]], dtype=DTYPES[dtype]))
    grad_case(f"ignored NaN, {dtype}", "crossEntropy", loss(F.cross_entropy), wild, i(-100, 1), {})
    grad_case(f"ignored NaN, weighted, {dtype}", "nllLoss", loss(F.nll_loss), wild, i(-100, 1), {"weight": v(1, 2)})
    grad_case(f"infinity times weight 0, {dtype}", "nllLoss", loss(F.nll_loss), wild, i(0, 1), {"weight": v(0, 2)})
refused("class beyond", "nllLoss", loss(F.nll_loss), In(torch.zeros(2, 3)), i(0, 3), {})
refused("class beyond", "crossEntropy", loss(F.cross_entropy), In(torch.zeros(2, 3)), i(0, -1), {})

# --- pooling ---
plane = torch.arange(12.0).reshape(1, 1, 3, 4)
plane[0, 0, 0, 0], plane[0, 0, 2, 3] = inf, nan
line = torch.tensor([inf, 1, 2, 3, 4, nan, 5, 6.0, -inf]).reshape(1, 1, 9)
for dtype in BOTH:
    for size in ([2, 3], [4, 5], [1, 3], [3, 4], [2, 2], 1):
        grad_case(f"infinity and NaN in windows to {size}, {dtype}", "adaptiveAvgPool2d", lambda x, s: F.adaptive_avg_pool2d(x, s), In(plane.to(DTYPES[dtype])), size)
    for size in (2, 4, 5, 9, 11):
        grad_case(f"infinity and NaN in windows to {size}, {dtype}", "adaptiveAvgPool1d", F.adaptive_avg_pool1d, In(line.to(DTYPES[dtype])), size)
    for o in ({}, {"stride": 1, "padding": 1}, {"stride": 1, "padding": 1, "countIncludePad": False}):
        py = {"countIncludePad": "count_include_pad"}
        pool = lambda fn: lambda x, s, o: fn(x, s, **{py.get(k, k): x for k, x in o.items()})
        grad_case(f"infinity and NaN {o}, {dtype}", "avgPool1d", pool(F.avg_pool1d), In(line.to(DTYPES[dtype])), 2, o)
        grad_case(f"infinity and NaN {o}, {dtype}", "avgPool2d", pool(F.avg_pool2d), In(plane.to(DTYPES[dtype])), 2, o)
    case(f"to nothing, {dtype}", "adaptiveAvgPool2d", lambda x, s: F.adaptive_avg_pool2d(x, s), In(plane.to(DTYPES[dtype])), [0, 2])

# --- indices that are repeated ---
for label, index in (("repeated", i(0, 0, 2)), ("thrice", i(1, 1, 1)), ("none", In(torch.zeros(0, dtype=torch.int32))), ("0-d", In(torch.tensor(1, dtype=torch.int32)))):
    for dim in (0, 1):
        grad_case(f"{label}, dim {dim}", "indexFill", lambda x, dim, j, v: x.index_fill(dim, j.long(), v), In(values((3, 4))), dim, index, In(torch.tensor(2.0)))
grad_case("repeated, a vector, float64", "indexFill", lambda x, dim, j, v: x.index_fill(dim, j.long(), v), d(1, 2, 3), 0, i(2, 2), In(torch.tensor(2.0, dtype=torch.float64)))
put = lambda acc: lambda x, specs, v, *_: x.index_put(tuple(s.long() for s in specs), v, accumulate=acc)
for label, v in (("a vector", t(1, 2, 3)), ("0-d", In(torch.tensor(2.0)))):
    grad_case(f"repeated, added, {label}", "indexPut", put(True), t(5, 6, 7), [i(0, 0, 2)], v, True)
grad_case("repeated", "indexAdd", lambda x, dim, j, s: x.index_add(dim, j.long(), s), t(5, 6, 7), 0, i(0, 0, 2), t(1, 2, 3))
grad_case("repeated", "scatterAdd", lambda x, dim, j, s: x.scatter_add(dim, j.long(), s), t(5, 6, 7), 0, i(0, 0, 2), t(1, 2, 3))
grad_case("repeated", "indexSelect", lambda x, dim, j: x.index_select(dim, j.long()), t(5, 6, 7), 0, i(0, 0, 2))
grad_case("repeated", "gather", lambda x, dim, j: x.gather(dim, j.long()), t(5, 6, 7), 0, i(0, 0, 2))
grad_case("repeated", "take", lambda x, j: x.take(j.long()), t(5, 6, 7), i(0, 0, 2))
grad_case("0-d value", "maskedFill", lambda x, m, v: x.masked_fill(m, v), In(values((2, 3))), In(torch.tensor([True, False, True])), In(torch.tensor(2.0)))

# --- activations at their kinks and ends ---
ACTIVATIONS = [
    ("elu", F.elu, (), (0, 1, -1, inf, -inf)), ("elu", F.elu, (0.5,), (0, 1, -1, inf, -inf)), ("leakyRelu", F.leaky_relu, (), (0, 1, -1, inf, -inf, nan)),
    ("relu", F.relu, (), (0, 1, -1, inf, -inf, nan)), ("relu6", F.relu6, (), (0, 6, -1, inf, -inf, nan, 7)), ("hardtanh", F.hardtanh, (), (0, 1, -1, inf, -inf, nan)),
    ("logSigmoid", F.logsigmoid, (), (0, 1, -1, inf, -inf, nan, 30, -30, 100, -100, 1000, -1000)), ("softplus", F.softplus, (), (0, 20, 20.5, -20, inf, -inf, nan, 30)),
    ("gelu", F.gelu, (), (0, 1, -1, 30, -30)), ("gelu", lambda x, o: F.gelu(x, **o), ({"approximate": "tanh"},), (0, 1, -1, 30, -30)),
    ("silu", F.silu, (), (0, 100, -100, nan, 30)), ("mish", F.mish, (), (0, 1, -1, 80, -80, nan, 30)), ("tanhshrink", F.tanhshrink, (), (0, inf, -inf, nan, 1)),
    ("tanh", torch.tanh, (), (0, inf, -inf, nan)), ("sigmoid", torch.sigmoid, (), (0, inf, -inf, nan, 30)), ("softsign", F.softsign, (), (0, 1, -1)),
]
for op, fn, args, at in ACTIVATIONS:
    for dtype in BOTH:
        grad_case(f"kinks and ends {args}, {dtype}", op, fn, t(*map(float, at), dtype=dtype), *args, twice=True)
for dtype in BOTH:
    v = lambda *x: t(*x, dtype=dtype)
    for low, high in ((-1.0, 1.0), (0.0, inf), (1.0, -1.0)):
        grad_case(f"bounds {low} … {high}, {dtype}", "clamp", torch.clamp, v(-1, 1, 0, nan, inf, -inf), low, high)
    for op in ("abs", "sign", "sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal", "asin", "acos", "square", "exp", "floor", "round", "erf", "atan", "expm1", "exp2", "sinh", "cosh"):
        grad_case(f"ends, {dtype}", op, getattr(torch, op), v(0, 1, -1, inf, -inf, nan))
    for exponent in (0, 1, 2, 3, 0.5, -1, -0.5, 1.5, -2):
        grad_case(f"ends to {exponent}, {dtype}", "pow", torch.pow, v(0, 1, -1, inf, -inf, nan), exponent)
    grid = (0.0, 1.0, -1.0, 2.5, inf, -inf, nan)
    a, b = v(*[x for x in grid for _ in grid]), v(*(grid * len(grid)))
    for op, fn in (("pow", torch.pow), ("atan2", torch.atan2), ("maximum", torch.maximum), ("minimum", torch.minimum), ("mul", torch.mul), ("div", torch.div), ("floorDivide", lambda a, b: torch.div(a, b, rounding_mode="floor")), ("remainder", torch.remainder), ("fmod", torch.fmod)):
        grad_case(f"all pairs of ends, {dtype}", op, fn, a, b)
    grad_case(f"NaN and infinities, {dtype}", "nanToNum", torch.nan_to_num, v(nan, inf, -inf, 1))

# --- rounded quotients, interpolation ---
for mode in ("trunc", "floor"):
    for dtype in BOTH:
        v = lambda *x: t(*x, dtype=dtype)
        quotient = lambda a, b, o: torch.div(a, b, rounding_mode=o["roundingMode"])
        o = {"roundingMode": mode}
        grad_case(f"{mode} by 0 and of infinities, {dtype}", "div", quotient, v(1, -1, 0, inf, 7, -7, nan, 1, 2), v(0, 0, 0, 0, 2, 2, 1, inf, nan), o)
        grad_case(f"{mode} by the number 0, {dtype}", "div", quotient, v(1, -1, 0), 0.0, o)
        grad_case(f"{mode}, broadcast, {dtype}", "div", quotient, In(values((2, 3), dtype)), v(0, 2, -3), o)
    case(f"{mode} of integers by the number 0.5", "div", quotient, i(1, -3, 0), 0.5, o)
LERP = [(inf, inf), (inf, 1), (1, inf), (inf, -inf), (1, 2), (nan, 1), (-inf, 0)]
for dtype in BOTH:
    v = lambda *x: t(*x, dtype=dtype)
    for w in (0.0, 0.3, 0.5, 0.8, 1.0, inf, nan):
        a, b = v(*[a for a, _ in LERP]), v(*[b for _, b in LERP])
        grad_case(f"ends by {w}, {dtype}", "lerp", torch.lerp, a, b, w)
        grad_case(f"ends by a tensor of {w}, {dtype}", "lerp", torch.lerp, a, b, v(w))
    grad_case(f"ends, {dtype}", "addcmul", torch.addcmul, v(1, inf, 0), v(inf, 0, nan), v(0, 1, 1))
    grad_case(f"by 0, {dtype}", "addcdiv", torch.addcdiv, v(1, 1, 1), v(1, -1, inf), v(0, 2, 4))

# --- reductions ---
over = lambda x, dims: list(range(x.dim())) if dims is None else dims
for dtype in BOTH:
    v = lambda *x: t(*x, dtype=dtype)
    m = lambda *rows: In(torch.tensor(rows, dtype=DTYPES[dtype]))
    for op in ("max", "min"):
        fn = getattr(torch, op)
        for label, x in (("NaN twice", v(1, nan, 3, nan)), ("NaN", v(nan, 1)), ("all NaN", v(nan, nan)), ("infinities", v(1, inf, inf, -inf, -inf)), ("a matrix with NaN", m((1.0, nan), (nan, nan)))):
            grad_case(f"{label}, {dtype}", op, fn, x)
        named = lambda x, dim: dict(zip(("values", "indices"), fn(x, dim)))
        grad_case(f"NaN in rows, {dtype}", op, named, m((1.0, nan, nan), (1.0, 2.0, 2.0), (inf, -inf, inf)), 1)
        grad_case(f"NaN in rows, {dtype}", f"a{op}", getattr(torch, f"a{op}"), m((1.0, nan, nan), (1.0, 2.0, 2.0), (inf, -inf, inf)), 1)
    for p in (inf, -inf, 2, 1, 3, 0.5, -1):
        for x in ((1, nan, -3, nan), (1, inf, -inf, 2), (0, 0), (0, 1), (-2, 2, 1), (1, -inf)):
            grad_case(f"of {x}, p {p}, {dtype}", "norm", torch.norm, v(*map(float, x)), p)
        grad_case(f"of rows, p {p}, {dtype}", "norm", torch.norm, m((1.0, nan), (2.0, -2.0), (0, 0)), p, 1)
        for shape, dims in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((2, 0), [0, 1])):
            empty = In(torch.zeros(shape, dtype=DTYPES[dtype]))
            what = f"empty {list(shape)}, dims {dims}, p {p}, {dtype}"
            if p == -1 and dims != 1:  # torch.norm gives 0, which no negative power of a sum of nothing is
                refused(what, "norm", lambda x, p, d: torch.linalg.vector_norm(x, p, d), empty, p, dims)
            else:
                grad_case(what, "norm", lambda x, p, d: torch.norm(x, p, over(x, d)), empty, p, dims)
    big = 1e20 if dtype == "float32" else 1e150
    for op in ("std", "var"):
        fn = lambda x, dim, k, o: getattr(torch, op)(x, over(x, dim), correction=o["correction"])
        for n, correction in ((1, 1), (2, 2), (3, 3), (2, 3), (3, 5), (1, 0)):
            grad_case(f"{n} elements, correction {correction}, {dtype}", op, fn, v(*range(1, n + 1)), None, False, {"correction": correction})
        grad_case(f"rows of two, correction 2, {dtype}", op, fn, m((1.0, 2.0), (3.0, 3.0)), 1, False, {"correction": 2})
        case(f"no elements, {dtype}", op, fn, v(), None, False, {"correction": 1})
        grad_case(f"constant, {dtype}", op, fn, v(2, 2, 2), None, False, {"correction": 1})
        grad_case(f"NaN and infinities, {dtype}", op, fn, m((1.0, nan, 2.0), (1.0, inf, 2.0)), 1, False, {"correction": 1})
    deviation = lambda x, dim, k, o: torch.std(x, over(x, dim), correction=o["correction"])
    for o in ({"correction": 1}, {"correction": 0}):
        grad_case(f"large {o}, {dtype}", "std", deviation, v(big, 2 * big, 3 * big), None, False, o)
        grad_case(f"large rows {o}, {dtype}", "std", deviation, m((big, 2 * big, 3 * big), (1.0, 2.0, 4.0)), 1, False, o)
        grad_case(f"large columns {o}, {dtype}", "std", deviation, m((big, 2.0), (3 * big, 3.0)), 0, False, o)
        grad_case(f"small {o}, {dtype}", "std", deviation, v(1 / big, 2 / big, 3 / big), None, False, o)
    case(f"large, 100 elements, {dtype}", "std", torch.std, v(*[big * (1 + j % 7) for j in range(100)]))
    for label, x in (("infinity", v(inf, 1)), ("minus infinities", v(-inf, -inf)), ("minus infinity", v(-inf, 1)), ("large", v(3e38, -3e38)), ("NaN", v(nan, 1))):
        grad_case(f"{label}, {dtype}", "logSumExp", torch.logsumexp, x, 0)
    for label, a, b, o in [
        ("tiny", v(1e-9, 1e-9), v(1, 1), {}), ("tiny and large", v(1e-10, 0), v(1e5, 0), {}), ("zero", v(0, 0), v(1, 1), {}), ("zeros", v(0, 0), v(0, 0), {}),
        ("below eps", v(0.1, 0.4), v(3, 4), {"eps": 0.5}), ("both below eps", v(0.1, 0.2), v(0.2, 0.1), {"eps": 0.5}), ("at eps", v(0.3, 0.4), v(3, 4), {"eps": 0.5}),
        ("above", v(1, 2), v(-2, 0.5), {}), ("large", v(1e18, 1e18), v(1e18, 0), {}), ("infinite", v(inf, 1), v(1, 1), {}),
    ]:
        grad_case(f"{label}, {dtype}", "cosineSimilarity", lambda a, b, o: F.cosine_similarity(a, b, **o), a, b, {"dim": 0, **o})
    grad_case(f"rows, {dtype}", "cosineSimilarity", lambda a, b, o: F.cosine_similarity(a, b, **o), m((1.0, 2.0, 0), (0, 0, 0)), m((1.0, 2.0, 3.0)), {"dim": 1})
    grad_case(f"equal, eps 0, {dtype}", "pairwiseDistance", lambda a, b, o: F.pairwise_distance(a, b, **o), m((1.0, 2.0)), m((1.0, 2.0)), {"eps": 0.0})
refused("integers", "cosineSimilarity", lambda a, b, o: F.cosine_similarity(a, b, **o), i(1, 2), i(1, 2), {"dim": 0})

# --- one value for each statistic ---
group = lambda x, n: F.group_norm(x, n)
for shape, groups in (((1, 2), 2), ((1, 2, 1), 2), ((1, 3, 1, 1), 3)):
    refused(f"{list(shape)} in {groups}", "groupNorm", group, In(torch.ones(shape)), groups)
for shape, groups in (((2, 2), 2), ((1, 4), 2), ((2, 2, 1, 1), 2), ((0, 2, 2), 2)):
    grad_case(f"{list(shape)} in {groups}", "groupNorm", group, In(values(shape)), groups)
for shape in ((1, 2, 1), (2, 2, 1), (2, 2, 1, 1), (2, 2)):
    refused(f"{list(shape)}", "instanceNorm", lambda x: F.instance_norm(x), In(torch.ones(shape)))
case("[2, 2, 0]", "instanceNorm", lambda x: F.instance_norm(x), In(torch.ones(2, 2, 0)))
refused("[1, 2]", "batchNorm", lambda x, m, v, w, b, o: F.batch_norm(x, m, v, w, b, True), In(torch.ones(1, 2)), None, None, None, None, {"training": True})

# --- elements that share their memory ---
for label, x in (("a vector", In(torch.tensor([1.0]), ("expand", [3]))), ("a row", In(torch.ones(3), ("expand", [2, 3]))), ("part", In(torch.ones(4), ("narrow", 0, 1, 1), ("expand", [3])))):
    in_place(label, "fill_", lambda x, v: x.fill_(v), x, 2)
    in_place(label, "zero_", lambda x: x.zero_(), x)
WRITES = {
    "add_": 1.0, "mul_": 2.0, "sub_": 1.0, "div_": 2.0, "pow_": 2.0, "remainder_": 2.0, "exp_": None, "neg_": None, "relu_": None, "abs_": None, "sign_": None, "sqrt_": None,
    "tanh_": None, "sigmoid_": None, "floor_": None, "round_": None, "square_": None, "log_": None, "erf_": None,
}
for op, argument in WRITES.items():
    refused("expanded", op, lambda x, *rest: getattr(x, op)(*rest), In(torch.tensor([1.0]), ("expand", [3])), *([] if argument is None else [argument]))
refused("expanded", "copy_", lambda x, y: x.copy_(y), In(torch.tensor([1.0]), ("expand", [3])), t(1, 2, 3))
refused("expanded", "lerp_", lambda x, y, w: x.lerp_(y, w), In(torch.tensor([1.0]), ("expand", [3])), t(1, 2, 3), 0.5)
for dtype in DTYPES:
    in_place(f"expanded {dtype}", "fill_", lambda x, v: x.fill_(v), In(values((2, 1), dtype), ("expand", [2, 3])), 1)

# --- comparisons of whole tensors ---
for op, fn in (("any", torch.any), ("all", torch.all)):
    for label, x in (("NaN", t(nan, 0.0)), ("zeros", t(0, -0.0)), ("no elements", t()), ("ones", t(1, 2))):
        case(label, op, fn, x)
    case("no columns", op, fn, In(torch.zeros(2, 0)), 1)
    case("no rows", op, fn, In(torch.zeros(0, 2)), 1)
write("edges")
