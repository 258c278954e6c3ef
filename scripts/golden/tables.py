"""Element-wise functions with the range from which ordinary arguments come: for the scripts that make cases of each of them."""
import torch
import torch.nn.functional as F

UNARY = [
    ("floor", torch.floor, -3, 3), ("ceil", torch.ceil, -3, 3), ("round", torch.round, -3, 3), ("trunc", torch.trunc, -3, 3),
    ("reciprocal", torch.reciprocal, 0.3, 3), ("rsqrt", torch.rsqrt, 0.3, 3), ("square", torch.square, -2, 2), ("log1p", torch.log1p, -0.5, 3),
    ("expm1", torch.expm1, -2, 2), ("log2", torch.log2, 0.3, 3), ("log10", torch.log10, 0.3, 3), ("exp2", torch.exp2, -2, 2),
    ("tan", torch.tan, -1.2, 1.2), ("sinh", torch.sinh, -2, 2), ("cosh", torch.cosh, -2, 2), ("asin", torch.asin, -0.9, 0.9),
    ("acos", torch.acos, -0.9, 0.9), ("atan", torch.atan, -3, 3), ("erf", torch.erf, -2, 2), ("leakyRelu", F.leaky_relu, -2, 2),
    ("gelu", F.gelu, -3, 3), ("silu", F.silu, -3, 3), ("softplus", F.softplus, -3, 3), ("elu", F.elu, -2, 2),
    ("hardtanh", F.hardtanh, -2, 2), ("relu6", F.relu6, -2, 8), ("logSigmoid", F.logsigmoid, -3, 3), ("mish", F.mish, -3, 3),
    ("softsign", F.softsign, -3, 3), ("tanhshrink", F.tanhshrink, -3, 3),
]
ACTIVATIONS = [name for name, *_ in UNARY[19:]]
