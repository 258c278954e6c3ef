"""Writes packages/tensor/golden/neural.json: linear layers, convolutions, pooling, normalisation, embeddings and losses as PyTorch computes them,
with gradients. Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/neural.py
"""
import math

import torch
import torch.nn.functional as F
from common import In, case, grad_case, rng, seed, values, write

seed(41)
v = lambda *shape, dtype="float32": In(values(shape, dtype, -1.0, 1.0))
d = lambda *shape: v(*shape, dtype="float64")
between = lambda *shape, dtype="float32": In(values(shape, dtype, 0.05, 0.95))
ints = lambda data: In(torch.tensor(data, dtype=torch.int32))


def both(label, op, fn, shapes, *rest):
    """In float32 and in float64; a shape of None is an argument that is left out."""
    for dtype in ("float32", "float64"):
        args = [None if shape is None else v(*shape, dtype=dtype) for shape in shapes]
        grad_case(f"{label}, {dtype}", op, fn, *args, *rest)


# --- linear ---
for label, shape in (("a vector", (3,)), ("a matrix", (4, 3)), ("three dimensions", (2, 3, 3)), ("no rows", (0, 3)), ("one row", (1, 3))):
    both(label, "linear", F.linear, (shape, (2, 3), (2,)))
both("no bias", "linear", F.linear, ((4, 3), (2, 3), None))
both("one output", "linear", F.linear, ((5, 4), (1, 4), (1,)))
both("nothing to sum", "linear", F.linear, ((2, 0), (3, 0), (3,)))
both("beyond a tile", "linear", F.linear, ((9, 17), (13, 17), (13,)))
T = ("transpose", 0, 1)
grad_case("strided", "linear", F.linear, In(values((3, 4)), T), In(values((3, 2)), T), In(values((2, 2)), ("select", 1, 1)))
grad_case("strided, three dimensions", "linear", F.linear, In(values((3, 2, 2)), ("permute", [1, 2, 0])), v(2, 3), v(2))

# --- convolutions ---
SNAKE = {"outputPadding": "output_padding"}


def conv(fn):
    return lambda x, w, b, o=None: fn(x, w, b, **{SNAKE.get(k, k): tuple(a) if isinstance(a, list) else a for k, a in (o or {}).items()})


CONV2D = [
    ("plain", ((2, 3, 4, 5), (2, 3, 2, 3), (2,)), {}),
    ("no bias", ((1, 2, 4, 4), (3, 2, 3, 3), None), {"padding": 1}),
    ("stride and padding", ((2, 2, 5, 4), (3, 2, 3, 3), (3,)), {"stride": 2, "padding": 1}),
    ("each side its own", ((1, 2, 5, 6), (2, 2, 2, 3), (2,)), {"stride": [2, 1], "padding": [0, 2], "dilation": [1, 2]}),
    ("groups", ((2, 4, 3, 3), (6, 2, 2, 2), (6,)), {"groups": 2}),
    ("depthwise", ((1, 3, 4, 4), (3, 1, 3, 3), (3,)), {"groups": 3, "padding": 1}),
    ("depthwise, twice as many, strided", ((2, 2, 5, 5), (4, 1, 3, 2), (4,)), {"groups": 2, "stride": 2, "dilation": [1, 2]}),
    ("one by one", ((2, 3, 2, 3), (4, 3, 1, 1), (4,)), {}),
    ("same", ((1, 2, 4, 5), (2, 2, 2, 3), (2,)), {"padding": "same"}),
    ("same, dilated", ((1, 1, 5, 5), (2, 1, 3, 2), (2,)), {"padding": "same", "dilation": 2}),
    ("valid", ((1, 1, 3, 3), (1, 1, 2, 2), (1,)), {"padding": "valid"}),
    ("one image without a batch", ((2, 4, 4), (3, 2, 3, 3), (3,)), {}),
    ("no images", ((0, 2, 4, 4), (3, 2, 3, 3), (3,)), {}),
    ("window as large as the image", ((2, 2, 3, 3), (2, 2, 3, 3), (2,)), {}),
]
for label, shapes, options in CONV2D:
    both(label, "conv2d", conv(F.conv2d), shapes, options)
grad_case("strided", "conv2d", conv(F.conv2d), In(values((4, 2, 3, 2)), ("permute", [3, 1, 2, 0])), In(values((2, 2, 2, 3)), ("transpose", 0, 3)), v(3))
for label, shapes, options in [
    ("plain", ((2, 3, 6), (2, 3, 3), (2,)), {}),
    ("all options", ((1, 4, 7), (2, 2, 2), (2,)), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    ("same", ((1, 2, 5), (2, 2, 4), None), {"padding": "same"}),
    ("without a batch", ((3, 5), (2, 3, 2), (2,)), {}),
]:
    both(label, "conv1d", conv(F.conv1d), shapes, options)
for label, shapes, options in [
    ("plain", ((1, 2, 3, 3), (2, 3, 2, 2), (3,)), {}),
    ("strided", ((2, 3, 2, 3), (3, 2, 3, 3), (2,)), {"stride": 2, "padding": 1, "outputPadding": 1}),
    ("groups, dilated", ((1, 4, 2, 2), (4, 1, 2, 3), (2,)), {"groups": 2, "dilation": [2, 1], "stride": [1, 2]}),
    ("without a batch", ((2, 3, 2), (2, 1, 2, 2), None), {}),
]:
    both(label, "convTranspose2d", conv(F.conv_transpose2d), shapes, options)
both("strided", "convTranspose1d", conv(F.conv_transpose1d), ((2, 2, 4), (2, 3, 3), (3,)), {"stride": 2, "padding": 1, "outputPadding": 1})
both("without a batch", "convTranspose1d", conv(F.conv_transpose1d), ((2, 4), (2, 3, 3), (3,)), {})

G = {"n": 2, "c": 2, "h": 3, "w": 4, "o": 3, "kh": 2, "kw": 2, "oh": 2, "ow": 3, "strideH": 1, "strideW": 1, "padH": 0, "padW": 0, "dilH": 1, "dilW": 1, "groups": 1}
both("as conv2d", "convolution", lambda x, w, b, g: F.conv2d(x, w, b), ((2, 2, 3, 4), (3, 2, 2, 2), (3,)), G)
both("as the gradient", "convolutionInput", lambda y, w, g: F.conv_transpose2d(y, w), ((2, 3, 2, 3), (3, 2, 2, 2)), G)
# The weight's gradient as a convolution of x with y, images as channels.
both("as the gradient", "convolutionWeight", lambda x, y, g: F.conv2d(x.transpose(0, 1), y.transpose(0, 1)).transpose(0, 1), ((2, 2, 3, 4), (2, 3, 2, 3)), G)

# --- pooling ---
POOL = {"ceilMode": "ceil_mode", "countIncludePad": "count_include_pad", "divisorOverride": "divisor_override"}


def pool(fn, **more):
    def call(x, size, o=None):
        options = {POOL.get(k, k): tuple(a) if isinstance(a, list) else a for k, a in (o or {}).items()}
        return fn(x, tuple(size) if isinstance(size, list) else size, **options, **more)

    return call


planes = lambda *shape, dtype="float64": In(torch.tensor(rng.permutation(math.prod(shape)) / 4.0 - 3, dtype=getattr(torch, dtype)).reshape(shape))
MAXIMA = [
    ("side by side", (2, 2, 4, 6), 2, {}),
    ("each side its own", (1, 2, 5, 6), [2, 3], {"stride": [1, 2]}),
    ("padded", (1, 2, 5, 5), 3, {"stride": 2, "padding": 1}),
    ("dilated", (1, 1, 6, 6), 2, {"stride": 1, "dilation": [2, 3], "padding": [1, 0]}),
    ("ceil", (1, 1, 5, 6), 3, {"stride": 2, "ceilMode": True}),
    ("ceil that begins outside", (1, 1, 4, 4), 2, {"stride": 3, "padding": 1, "ceilMode": True}),
    ("one image", (2, 4, 4), 2, {}),
]
for label, shape, size, o in MAXIMA:
    grad_case(label, "maxPool2d", pool(F.max_pool2d), planes(*shape), size, o)
    grad_case(label, "maxPool2dWithIndices", pool(F.max_pool2d, return_indices=True), planes(*shape, dtype="float32"), size, o)
grad_case("ties", "maxPool2dWithIndices", pool(F.max_pool2d, return_indices=True), In(torch.zeros(1, 1, 4, 4)), 2, {})
case("NaN and infinities", "maxPool2dWithIndices", pool(F.max_pool2d, return_indices=True), In(torch.tensor([[[math.nan, 1.0, -math.inf, -math.inf], [2.0, math.nan, -math.inf, -math.inf]]])), 2, {})
case("no images", "maxPool2d", pool(F.max_pool2d), v(0, 2, 4, 4), 2, {})
grad_case("strided", "maxPool2d", pool(F.max_pool2d), In(planes(4, 4, 2).base, ("permute", [2, 1, 0])), 2, {})
grad_case("plain", "maxPool1d", pool(F.max_pool1d), planes(2, 2, 7), 3, {})
grad_case("all options", "maxPool1d", pool(F.max_pool1d), planes(2, 8), 2, {"stride": 3, "padding": 1, "dilation": 2, "ceilMode": True})
for label, shape, size, o in [
    ("side by side", (2, 2, 4, 6), 2, {}),
    ("each side its own", (1, 2, 5, 6), [2, 3], {"stride": [1, 2], "padding": [1, 0]}),
    ("padding not counted", (1, 2, 5, 5), 3, {"stride": 2, "padding": 1, "countIncludePad": False}),
    ("padding counted", (1, 2, 5, 5), 3, {"stride": 2, "padding": 1}),
    ("divisor", (1, 1, 4, 4), 2, {"divisorOverride": 3}),
    ("ceil", (1, 1, 5, 6), 3, {"stride": 2, "ceilMode": True, "padding": 1}),
    ("ceil, not counted", (1, 1, 5, 6), [3, 2], {"stride": [2, 4], "ceilMode": True, "countIncludePad": False}),
    ("one image", (2, 4, 4), 2, {}),
]:
    both(label, "avgPool2d", pool(F.avg_pool2d), (shape,), size, o)
both("plain", "avgPool1d", pool(F.avg_pool1d), ((2, 2, 7),), 3, {})
both("all options", "avgPool1d", pool(F.avg_pool1d), ((2, 8),), 3, {"stride": 2, "padding": 1, "countIncludePad": False, "ceilMode": True})
for shape, size in (((2, 2, 4, 6), 2), ((1, 2, 5, 7), [3, 2]), ((2, 3, 4), 1), ((1, 1, 2, 3), [4, 5])):
    both(f"{shape} to {size}", "adaptiveAvgPool2d", pool(F.adaptive_avg_pool2d), (shape,), size)
both("uneven", "adaptiveAvgPool1d", pool(F.adaptive_avg_pool1d), ((2, 2, 7),), 3)
PLANES = {"planes": 2, "h": 3, "w": 4, "kh": 2, "kw": 2, "oh": 2, "ow": 3, "strideH": 1, "strideW": 1, "padH": 0, "padW": 0, "dilH": 1, "dilW": 1}
MEANS = {**PLANES, "includePad": 1, "divisor": 0}
both("as maxPool2d", "maxPoolPlanes", lambda x, g: F.max_pool2d(x, 2, 1, return_indices=True), ((2, 3, 4),), PLANES)
both("as avgPool2d", "avgPoolPlanes", lambda x, g: F.avg_pool2d(x, 2, 1), ((2, 3, 4),), MEANS)
both("as the gradient", "avgPoolSpread", lambda x, g: F.conv_transpose2d(x.unsqueeze(1), torch.full((1, 1, 2, 2), 0.25, dtype=x.dtype)).squeeze(1), ((2, 2, 3),), MEANS)

# --- normalisation ---
for label, shape, size in (("a row each", (3, 4), 4), ("two dimensions", (2, 3, 2), [3, 2]), ("one vector", (5,), [5]), ("no rows", (0, 3), 3), ("long", (2, 37), 37)):
    last = (size,) if isinstance(size, int) else tuple(size)
    norm = lambda x, n, w, b, o=None: F.layer_norm(x, (n,) if isinstance(n, int) else n, w, b, **(o or {}))
    for dtype in ("float32", "float64"):
        x, w, b = v(*shape, dtype=dtype), v(*last, dtype=dtype), v(*last, dtype=dtype)
        grad_case(f"{label}, {dtype}", "layerNorm", norm, x, size, w, b)
        grad_case(f"{label}, {dtype}, no weights", "layerNorm", norm, x, size, None, None, {"eps": 0.1})
grad_case("weight alone", "layerNorm", norm, d(3, 4), 4, d(4), None)
grad_case("bias alone", "layerNorm", norm, d(3, 4), 4, None, d(4))
grad_case("far from 0", "layerNorm", norm, In(values((3, 8), "float64", 100, 101)), 8, d(8), d(8), {"eps": 0.1})


def batch_norm(x, mean, variance, w, b, o):
    return F.batch_norm(x, mean, variance, w, b, o.get("training", False), o.get("momentum", 0.1), o.get("eps", 1e-5))


for label, shape in (("rows", (4, 3)), ("lines", (2, 3, 4)), ("images", (2, 3, 2, 2)), ("one channel", (5, 1))):
    c = (shape[1],)
    both(label, "batchNorm", batch_norm, (shape, None, None, c, c), {"training": True})
    both(f"{label}, no weights", "batchNorm", batch_norm, (shape, None, None, None, None), {"training": True, "eps": 0.1})
    case(f"{label}, not training", "batchNorm", batch_norm, v(*shape), v(*c), between(*c), v(*c), v(*c), {})
    case(f"{label}, not training, no weights", "batchNorm", batch_norm, d(*shape), d(*c), between(*c, dtype="float64"), None, None, {"eps": 0.1})
group_norm = lambda x, n, w, b, o=None: F.group_norm(x, n, w, b, **(o or {}))
for dtype in ("float32", "float64"):
    grad_case(f"images, {dtype}", "groupNorm", group_norm, v(2, 4, 2, 3, dtype=dtype), 2, v(4, dtype=dtype), v(4, dtype=dtype))
    grad_case(f"rows, {dtype}", "groupNorm", group_norm, v(3, 4, dtype=dtype), 2, None, None, {"eps": 0.1})
instance_norm = lambda x, w, b, o=None: F.instance_norm(x, weight=w, bias=b, **(o or {}))
both("images", "instanceNorm", instance_norm, ((2, 3, 2, 2), (3,), (3,)))
both("lines, no weights", "instanceNorm", instance_norm, ((2, 3, 4), None, None), {"eps": 0.1})


def rows_norm(x, w, b, eps):
    variance, mean = torch.var_mean(x.detach(), 1, unbiased=False)
    return F.layer_norm(x, x.shape[1:], w, b, eps), mean, (variance + eps).rsqrt()


def training_norm(x, w, b, eps):
    variance, mean = torch.var_mean(x.detach().transpose(0, 1).flatten(1), 1, unbiased=False)
    return F.batch_norm(x, None, None, w, b, True, 0.0, eps), mean, variance


both("with its statistics", "layerNormRows", rows_norm, ((3, 4), (4,), (4,)), 0.1)
both("with its statistics", "batchNormTraining", training_norm, ((3, 2, 4), (2,), (2,)), 0.1)

# --- embeddings ---
BAG = {"perSampleWeights": "per_sample_weights", "paddingIdx": "padding_idx", "includeLastOffset": "include_last_offset"}


def bag(w, i, o):
    o = {BAG.get(k, k): x.long() if isinstance(x, torch.Tensor) and x.dtype == torch.int32 else x for k, x in o.items()}
    return F.embedding_bag(i.long(), w, **o)


lookup = lambda w, i, o: F.embedding(i.long(), w, padding_idx=o.get("paddingIdx"))
for label, i, o in (("padded", [[1, 0], [3, 1]], {"paddingIdx": 1}), ("padded from the end", [3, 3, 0], {"paddingIdx": -1}), ("not padded", [2, 0], {})):
    grad_case(label, "embedding", lookup, d(4, 2), ints(i), o)
grad_case("padded", "embeddingRows", lambda w, i, p, s: F.embedding(i.long(), w, padding_idx=p), d(4, 2), ints([1, 0, 1, 3]), 1, False)
OFFSETS = {"offsets": ints([0, 2, 2, 5])}
for mode in ("sum", "mean", "max"):
    for label, i, o in [
        ("bags of one length", [[1, 0, 1], [3, 3, 2]], {}),
        ("offsets", [1, 0, 4, 2, 4, 0], OFFSETS),
        ("last offset", [1, 0, 4, 2, 4], {"offsets": ints([0, 2, 2, 5]), "includeLastOffset": True}),
        ("padded", [1, 0, 4, 2, 4, 4], {**OFFSETS, "paddingIdx": 4}),
        ("nothing but padding", [[4, 4], [1, 4]], {"paddingIdx": 4}),
    ]:
        grad_case(label, "embeddingBag", bag, d(5, 3), ints(i), {**o, "mode": mode})
grad_case("by default the mean, in float32", "embeddingBag", bag, v(5, 3), ints([[1, 0], [3, 3]]), {})
grad_case("weighted", "embeddingBag", bag, d(5, 3), ints([1, 0, 4, 2, 4, 0]), {**OFFSETS, "mode": "sum", "perSampleWeights": d(6)})

# --- losses ---
NAMES = {"posWeight": "pos_weight", "ignoreIndex": "ignore_index", "labelSmoothing": "label_smoothing", "logTarget": "log_target"}


def loss(fn):
    def call(*args):
        *tensors, o = args
        o = {"reduction": o} if isinstance(o, str) else o or {}
        tensors = [t.long() if t.dtype == torch.int32 else t for t in tensors]
        return fn(*tensors, **{NAMES.get(k, k): x for k, x in o.items()})

    return call


for op, fn in (("mseLoss", F.mse_loss), ("l1Loss", F.l1_loss), ("smoothL1Loss", F.smooth_l1_loss), ("huberLoss", F.huber_loss)):
    for reduction in ("mean", "sum", "none", None):
        grad_case(f"{reduction}", op, loss(fn), v(2, 3), v(2, 3), reduction)
    grad_case("float64", op, loss(fn), d(4), d(4), {"reduction": "sum"})
    grad_case("no elements", op, loss(fn), v(0, 2), v(0, 2), None)
for beta in (0.3, 0.0, 2.0):
    grad_case(f"beta {beta}", "smoothL1Loss", loss(F.smooth_l1_loss), d(6), d(6), {"beta": beta})
grad_case("delta", "huberLoss", loss(F.huber_loss), d(6), d(6), {"delta": 0.4, "reduction": "none"})
for reduction in ("mean", "sum", "none"):
    grad_case(reduction, "bceLoss", loss(F.binary_cross_entropy), between(2, 3), between(2, 3), reduction)
    grad_case(reduction, "bceWithLogits", loss(F.binary_cross_entropy_with_logits), v(2, 3), between(2, 3), reduction)
grad_case("weight", "bceLoss", loss(F.binary_cross_entropy), between(2, 3, dtype="float64"), between(2, 3, dtype="float64"), {"weight": between(3, dtype="float64")})
case("0 and 1", "bceLoss", loss(F.binary_cross_entropy), In(torch.tensor([0.0, 1.0, 0.0, 1.0])), In(torch.tensor([0.0, 0.0, 1.0, 1.0])), "none")
grad_case(
    "weights", "bceWithLogits", loss(F.binary_cross_entropy_with_logits), d(2, 3), between(2, 3, dtype="float64"),
    {"weight": between(2, 1, dtype="float64"), "posWeight": between(3, dtype="float64"), "reduction": "sum"},
)
grad_case("large, and 0", "bceWithLogits", loss(F.binary_cross_entropy_with_logits), In(torch.tensor([0.0, -500.0, 500.0, 30.0, -30.0], dtype=torch.float64)), In(torch.tensor([0.5, 1.0, 1.0, 0.0, 0.25], dtype=torch.float64)), "none")
for reduction in ("mean", "sum", "none", "batchmean"):
    grad_case(reduction, "klDiv", loss(F.kl_div), v(2, 3), between(2, 3), reduction)
grad_case("logarithms", "klDiv", loss(F.kl_div), d(2, 3), d(2, 3), {"logTarget": True, "reduction": "batchmean"})
for o in ({}, {"full": True, "reduction": "none"}, {"eps": 0.5, "reduction": "sum"}):
    grad_case(f"{o}", "gaussianNllLoss", loss(F.gaussian_nll_loss), d(2, 3), d(2, 3), between(2, 3, dtype="float64"), o)

CLASSES = {"weight": between(4, dtype="float64")}
INDEX = [
    ("rows", (3, 4), [3, 0, 3], {}),
    ("one row", (4,), 2, {}),
    ("images", (2, 4, 2), [[0, 1], [3, 3]], {}),
    ("images, each", (2, 4, 1, 2), [[[0, 1]], [[3, 3]]], {"reduction": "none"}),
    ("weights", (3, 4), [3, 0, 1], CLASSES),
    ("weights, sum", (3, 4), [3, 0, 1], {**CLASSES, "reduction": "sum"}),
    ("weights, each, images", (1, 4, 2), [[3, 1]], {**CLASSES, "reduction": "none"}),
    ("ignored by default", (3, 4), [3, -100, 1], {}),
    ("ignored", (4, 4), [3, 2, 1, 2], {"ignoreIndex": 2}),
    ("ignored, each", (4, 4), [3, 2, 1, 2], {"ignoreIndex": 2, "reduction": "none"}),
    ("ignored and weighted", (2, 4, 2), [[3, 2], [-1, 2]], {**CLASSES, "ignoreIndex": -1}),
    ("ignored and weighted, sum", (2, 4, 2), [[3, 2], [-1, 2]], {**CLASSES, "ignoreIndex": -1, "reduction": "sum"}),
    ("an ignored index that does not occur", (2, 4), [3, 2], {"ignoreIndex": 0}),
]
for label, shape, target, o in INDEX:
    grad_case(label, "nllLoss", loss(F.nll_loss), d(*shape), ints(target), o)
    grad_case(label, "crossEntropy", loss(F.cross_entropy), d(*shape), ints(target), o)
    grad_case(f"{label}, smoothed", "crossEntropy", loss(F.cross_entropy), d(*shape), ints(target), {**o, "labelSmoothing": 0.3})
case("all ignored", "nllLoss", loss(F.nll_loss), v(2, 3), ints([-100, -100]), {})
for label, shape, o in (("rows", (3, 4), {}), ("one row", (4,), {}), ("images", (2, 4, 2), {"reduction": "none"}), ("weights, smoothed", (2, 4, 2), {**CLASSES, "labelSmoothing": 0.2}), ("sum", (3, 4), {"reduction": "sum"})):
    # PyTorch gives no gradient for the weights; as probabilities the targets have one.
    grad_case(f"probabilities: {label}", "crossEntropy", loss(F.cross_entropy), d(*shape), between(*shape, dtype="float64"), o)

case("in evaluation", "dropout", lambda x, p, o: F.dropout(x, p, False), v(2, 3), 0.5, {"training": False})
grad_case("nothing dropped", "dropout", lambda x, p, o: F.dropout(x, p), v(2, 3), 0, {})
grad_case("all dropped", "dropout", lambda x, p, o: F.dropout(x, p), v(2, 3), 1, {})


def attention(q, k, x, o):
    """The formula of torch.nn.functional.scaled_dot_product_attention, which PyTorch has from 2.0 on."""
    scores = q @ k.transpose(-2, -1) * o.get("scale", q.shape[-1] ** -0.5)
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if o.get("isCausal") else o.get("attnMask")
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ x


MASK = torch.tensor([[True, False, True, True], [True, True, False, True]])
for label, o in (("plain", {}), ("causal", {"isCausal": True}), ("masked", {"attnMask": In(MASK)}), ("biased", {"attnMask": v(2, 4)}), ("scaled", {"scale": 0.3})):
    grad_case(label, "scaledDotProductAttention", attention, v(2, 3, 2, 3), v(2, 3, 4, 3), v(2, 3, 4, 2), o)

write("neural")
