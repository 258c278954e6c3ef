"""Writes packages/data/golden/data.json: index sequences and sizes of torch.utils.data that do not depend on a random generator. Random ones
cannot be compared: the generators differ.

Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/data.py
"""
import json
import pathlib

from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler, random_split

OUT = pathlib.Path(__file__).resolve().parents[2] / "packages/data/golden/data.json"


def replicas(n, count, drop_last):
    samplers = [DistributedSampler(range(n), count, rank, shuffle=False, drop_last=drop_last) for rank in range(count)]
    return {"n": n, "replicas": count, "dropLast": drop_last, "lengths": [len(s) for s in samplers], "indices": [list(s) for s in samplers]}


def batches(n, size, drop_last):
    sampler = BatchSampler(SequentialSampler(range(n)), size, drop_last)
    return {"n": n, "size": size, "dropLast": drop_last, "length": len(sampler), "indices": list(sampler)}


def split(n, lengths):
    return {"n": n, "lengths": lengths, "sizes": [len(part) for part in random_split(range(n), lengths)]}


both = (False, True)
golden = {
    # 1 and 2 samples for 5: each comes several times.
    "distributed": [replicas(n, k, drop) for n, k in ((7, 3), (6, 3), (5, 1), (1, 5), (2, 5), (11, 4)) for drop in both],
    "batches": [batches(n, size, drop) for n, size in ((5, 2), (4, 2), (1, 3), (0, 3)) for drop in both],
    "splits": [
        split(*one)
        for one in ((10, [0.5, 0.25, 0.25]), (10, [0.8, 0.2]), (7, [0.9, 0.1]), (10, [1 / 3, 1 / 3, 1 / 3]), (3, [3, 0]), (1, [1]), (10, [1, 0]))
    ],
}
OUT.parent.mkdir(exist_ok=True)
OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
