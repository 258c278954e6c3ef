"""The same work in PyTorch: two processes under torch.distributed.rpc, driven line by line from the benchmark.

Reads one JSON object a line on stdin, {"name": ..., "n": ...}, does that work n times on worker0, and answers {"seconds": ...}.
Its first line names its version and its two processes, which the benchmark stops while others are measured: TensorPipe polls without rest.
"""
import ctypes
import json
import os
import signal
import socket
import sys
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

torch.set_num_threads(1)


def noop():
    return None


def add_one(t):
    return t + 1


def round_trip(n):
    for _ in range(n):
        rpc.rpc_sync("worker1", noop)


def pipelined(n):
    for start in range(0, n, 1000):
        torch.futures.wait_all([rpc.rpc_async("worker1", noop) for _ in range(min(1000, n - start))])


def design_note(n):
    for _ in range(n):
        with dist_autograd.context() as context_id:
            t1 = torch.rand((3, 3), requires_grad=True)
            t2 = torch.rand((3, 3), requires_grad=True)
            t3 = rpc.rpc_sync("worker1", torch.add, args=(t1, t2))
            t4 = torch.rand((3, 3), requires_grad=True)
            loss = torch.mul(t3, t4).sum()
            dist_autograd.backward(context_id, [loss])
            dist_autograd.get_gradients(context_id)


def ping_pong_backward(n):
    """Backward of a graph that goes n times to worker1 and back; the forward pass is not timed."""
    with dist_autograd.context() as context_id:
        t = torch.rand((3, 3), requires_grad=True)
        x = t
        for _ in range(n):
            x = rpc.rpc_sync("worker1", add_one, args=(x,))
        loss = x.sum()
        start = time.perf_counter()
        dist_autograd.backward(context_id, [loss])
        return time.perf_counter() - start


def local_forward(n):
    x = torch.rand((3, 3), requires_grad=True)
    y = torch.rand((3, 3))
    for _ in range(n):
        x = x + y


def local_backward(n):
    x = torch.rand((3, 3), requires_grad=True)
    y = torch.rand((3, 3))
    z = x
    for _ in range(n):
        z = z + y
    loss = z.sum()
    start = time.perf_counter()
    loss.backward()
    return time.perf_counter() - start


WORK = {f.__name__: f for f in (round_trip, pipelined, design_note, ping_pong_backward, local_forward, local_backward)}


PR_SET_PDEATHSIG = 1


def worker(rank, port, commands, other=None):
    # Whoever kills the benchmark or the first process ends the second with it, even while they are stopped.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 0:
        lines = os.fdopen(commands)
        print(json.dumps({"ready": torch.__version__, "processes": [os.getpid(), other]}), flush=True)
        for line in lines:
            command = json.loads(line)
            start = time.perf_counter()
            seconds = WORK[command["name"]](command["n"])
            if seconds is None:
                seconds = time.perf_counter() - start
            print(json.dumps({"seconds": seconds}), flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]
    context = mp.get_context("fork")
    other = context.Process(target=worker, args=(1, free_port, -1))
    other.start()
    worker(0, free_port, os.dup(sys.stdin.fileno()), other.pid)
    other.join()
