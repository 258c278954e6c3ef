"""Writes packages/tensor/golden/neural.json: linear layers, convolutions, pooling, normalisation, embeddings and losses as PyTorch computes them,
with gradients. Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/neural.py
"""
import torch
import torch.nn.functional as F
from common import In, case, grad_case, seed, values, write

seed(41)
v = lambda *shape, dtype="float32": In(values(shape, dtype, -1.0, 1.0))
d = lambda *shape: v(*shape, dtype="float64")
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

# --- losses ---
NAMES = {"posWeight": "pos_weight", "ignoreIndex": "ignore_index", "labelSmoothing": "label_smoothing", "logTarget": "log_target"}


def loss(fn):
    def call(*args):
        *tensors, o = args
        o = {"reduction": o} if isinstance(o, str) else o or {}
        tensors = [t.long() if t.dtype == torch.int32 else t for t in tensors]
        return fn(*tensors, **{NAMES.get(k, k): x for k, x in o.items()})

    return call


between = lambda *shape, dtype="float32": In(values(shape, dtype, 0.05, 0.95))
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
