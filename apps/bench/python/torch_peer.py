"""The same work in PyTorch: two processes (or as many as its argument says) under torch.distributed.rpc, driven line by line from the benchmark.

Reads one JSON object a line on stdin, {"name": ..., "n": ..., "args": [...]}, does that work n times on worker0, and answers {"seconds": ...}.
Its first line names its version and its two processes, which the benchmark stops while others are measured: TensorPipe polls without rest.
"""
import ctypes
import json
import math
import os
import queue
import random
import signal
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.optim import DistributedOptimizer

torch.set_num_threads(1)


def noop():
    return None


def add_one(t):
    return t + 1


def round_trip(n):
    for _ in range(n):
        rpc.rpc_sync("worker1", noop)


def remote_to_here(n):
    for _ in range(n):
        rpc.remote("worker1", noop).to_here()


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


def timed(n, work):
    start = time.perf_counter()
    for _ in range(n):
        work()
    return time.perf_counter() - start


def products(n, size):
    a, b = torch.rand(size, size), torch.rand(size, size)
    return timed(n, lambda: a @ b)


def softmaxes(n, rows, columns):
    x = torch.randn(rows, columns)
    return timed(n, lambda: torch.softmax(x, 1))


def sums(n, length):
    a, b = torch.rand(length), torch.rand(length)
    return timed(n, lambda: a + b)


def tanhs(n, length):
    x = torch.randn(length)
    return timed(n, lambda: torch.tanh(x))


def layer_norms(n, rows, columns):
    x, weight, bias = torch.randn(rows, columns), torch.rand(columns), torch.rand(columns)
    return timed(n, lambda: F.layer_norm(x, [columns], weight, bias))


def convolutions(n, images, channels, out, size):
    x, weight = torch.randn(images, channels, size, size), torch.randn(out, channels, 3, 3)
    return timed(n, lambda: F.conv2d(x, weight, padding=1))


def cnn_steps(n, batch):
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    return timed(n, step)


def mlp_steps(n, batch):
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.randn(batch, 784), torch.randint(0, 10, (batch,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    return timed(n, step)


def lstm_steps(n, steps, batch, width):
    lstm = nn.LSTM(width, width)
    x = torch.randn(steps, batch, width)

    def step():
        lstm.zero_grad(set_to_none=True)
        lstm(x)[0].sum().backward()

    return timed(n, step)


def policy_steps(n, hidden):
    model = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 2))
    x, action = torch.randn(1, 4), torch.randint(0, 2, (1,))

    def step():
        model.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), action).backward()

    return timed(n, step)


def tiny_chain(n, op):
    work = (torch.mul, lambda x, y: torch.tanh(x), torch.matmul, lambda x, y: torch.softmax(x, 1))[op]
    x, y = torch.rand(3, 3, requires_grad=True), torch.eye(3, requires_grad=True)
    start = time.perf_counter()
    for _ in range(n):
        x = work(x, y)
    x.backward(torch.ones_like(x))
    return time.perf_counter() - start


def tiny_passes(n):
    x, y, gradient = torch.rand(3, 3, requires_grad=True), torch.rand(3, 3), torch.rand(3, 3)

    def step():
        x.grad = None
        torch.mul(x, y).backward(gradient)

    return timed(n, step)


def same(t):
    return t


def tensor_round_trips(n, length):
    x = torch.rand(length)
    return timed(n, lambda: rpc.rpc_sync("worker1", same, args=(x,)))


def take(t):
    return None


def tensors_one_way(n, length):
    x = torch.rand(length)
    return timed(n, lambda: rpc.rpc_sync("worker1", take, args=(x,)))


def backwards(n, graph):
    """`graph` recorded n times, each in a context of its own; only the backward passes are timed."""
    total = 0.0
    for _ in range(n):
        with dist_autograd.context() as context_id:
            loss = graph().sum()
            start = time.perf_counter()
            dist_autograd.backward(context_id, [loss])
            total += time.perf_counter() - start
    return total


def small():
    return torch.rand((3, 3), requires_grad=True)


def chains(n, hops):
    def graph():
        x = small()
        for _ in range(hops):
            x = rpc.rpc_sync("worker1", add_one, args=(x,))
        return x

    return backwards(n, graph)


def fans(n, workers):
    def graph():
        x = small()
        parts = torch.futures.wait_all([rpc.rpc_async(f"worker{i + 1}", add_one, args=(x,)) for i in range(workers)])
        return sum(parts[1:], parts[0])

    return backwards(n, graph)


def through(t, at, workers):
    return t + 1 if at > workers else rpc.rpc_sync(f"worker{at}", through, args=(t, at + 1, workers))


def rings(n, workers):
    return backwards(n, lambda: through(small(), 1, workers))


def concurrent(n, at_once):
    """n of the design note's passes, so many threads doing them at once."""
    shares = [n // at_once + (i < n % at_once) for i in range(min(n, at_once))]
    threads = [threading.Thread(target=design_note, args=(share,)) for share in shares]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def sized(n, elements):
    x = torch.ones(elements, requires_grad=True)
    start = time.perf_counter()
    for _ in range(n):
        with dist_autograd.context() as context_id:
            dist_autograd.backward(context_id, [rpc.rpc_sync("worker1", add_one, args=(x,)).sum()])
    return time.perf_counter() - start


TOKENS, EMBEDDING, HIDDEN, LAYERS, LENGTH, BATCH = 7, 2, 3, 4, 6, 5
made = {}


def integers(count, below):
    return torch.tensor([7919 * (i + 1) % below for i in range(count)])


def parameter_rrefs(module_rref):
    return [rpc.RRef(p) for p in module_rref.local_value().parameters()]


def forward(module_rref, x):
    return module_rref.local_value()(x)


def remote_forward(module_rref, x):
    return rpc.rpc_sync(module_rref.owner(), forward, args=(module_rref, x))


def make_rnn():
    encoder = rpc.remote("worker1", nn.Embedding, args=(TOKENS, EMBEDDING))
    decoder = rpc.remote("worker1", nn.Linear, args=(HIDDEN, TOKENS))
    core = nn.LSTM(EMBEDDING, HIDDEN, LAYERS)
    parameters = [p for m in (encoder, decoder) for p in rpc.rpc_sync(m.owner(), parameter_rrefs, args=(m,))]
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters + [rpc.RRef(p) for p in core.parameters()], lr=0.05)
    x, target = integers(LENGTH * BATCH, TOKENS).reshape(LENGTH, BATCH), integers(LENGTH * BATCH, TOKENS)

    def step():
        with dist_autograd.context() as context_id:
            output, _ = core(remote_forward(encoder, x))
            loss = F.cross_entropy(remote_forward(decoder, output).reshape(-1, TOKENS), target)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)

    return step


def rnn_steps(n):
    if "rnn" not in made:
        made["rnn"] = make_rnn()
    return timed(n, made["rnn"])


def parameter_here():
    return torch.rand((3, 3), requires_grad=True)


def make_remote_parameters():
    refs = [rpc.remote("worker1", parameter_here) for _ in range(2)]
    optimizer = DistributedOptimizer(torch.optim.SGD, refs, lr=0.05)

    def step():
        with dist_autograd.context() as context_id:
            loss = refs[0].to_here() + refs[1].to_here()
            dist_autograd.backward(context_id, [loss.sum()])
            optimizer.step(context_id)

    return step


def remote_parameter_steps(n):
    """The step of the documentation of DistributedOptimizer."""
    if "remote_parameters" not in made:
        made["remote_parameters"] = make_remote_parameters()
    return timed(n, made["remote_parameters"])


class Tables:
    def __init__(self, rows, width):
        self.tables = [nn.Embedding(rows, width, sparse=True) for _ in range(2)]
        self.optimizer = torch.optim.Adagrad([t.weight for t in self.tables], lr=0.1)
        self.lock, self.arrived, self.stepped = threading.Lock(), 0, torch.futures.Future()

    def look_up(self, users, items):
        return self.tables[0](users), self.tables[1](items)

    def step(self, context_id):
        for p, gradient in dist_autograd.get_gradients(context_id).items():
            p.grad = gradient
        self.optimizer.step()


    @staticmethod
    @rpc.functions.async_execution
    def step_together(server, context_id, trainers):
        self = server.local_value()
        gradients = dist_autograd.get_gradients(context_id)
        with self.lock:
            for p, gradient in gradients.items():
                p.grad = gradient if p.grad is None else p.grad + gradient
            self.arrived += 1
            stepped = self.stepped
            if self.arrived == trainers:
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
                self.arrived, self.stepped = 0, torch.futures.Future()
                stepped.set_result(None)
        return stepped


def train_together(server, n, batch, trainers):
    users, items = integers(batch, 100_000), integers(batch, 99_991)
    for _ in range(n):
        with dist_autograd.context() as context_id:
            user, item = server.rpc_sync().look_up(users, items)
            dist_autograd.backward(context_id, [(user * item).sum(1).pow(2).mean()])
            rpc.rpc_sync(server.owner(), Tables.step_together, args=(server, context_id, trainers))


def together_steps(n, batch, trainers):
    if "tables" not in made:
        made["tables"] = rpc.RRef(Tables(100_000, 16))
    start = time.perf_counter()
    args = (made["tables"], n, batch, trainers)
    torch.futures.wait_all([rpc.rpc_async(f"worker{i + 1}", train_together, args=args, timeout=0) for i in range(trainers)])
    return time.perf_counter() - start


def make_server(batch):
    server = rpc.remote("worker1", Tables, args=(100_000, 16))
    users, items = integers(batch, 100_000), integers(batch, 99_991)

    def step():
        with dist_autograd.context() as context_id:
            user, item = server.rpc_sync().look_up(users, items)
            dist_autograd.backward(context_id, [(user * item).sum(1).pow(2).mean()])
            server.rpc_sync().step(context_id)

    return step


def server_steps(n, batch):
    if batch not in made:
        made[batch] = make_server(batch)
    return timed(n, made[batch])


def in_group(rank, world, port):
    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)


def all_reduces_here(rank, world, port, n, length):
    in_group(rank, world, port)
    x = torch.ones(length)
    dist.barrier()
    return timed(n, lambda: dist.all_reduce(x))


def on_all_ranks(work, *args):
    if "port" not in made:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            made["port"] = probe.getsockname()[1]
    world = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    there = [rpc.rpc_async(f"worker{rank}", work, args=(rank, world, made["port"], *args), timeout=0) for rank in range(1, world)]
    here = work(0, world, made["port"], *args)
    return max([here, *torch.futures.wait_all(there)])


def all_reduces(n, length):
    return on_all_ranks(all_reduces_here, n, length)


def make_ddp(batch, width, alone):
    module = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    model = module if alone else nn.parallel.DistributedDataParallel(module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.randn(batch, 784), torch.tensor([7 * i % 10 for i in range(batch)])

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step


def ddp_steps_here(rank, world, port, n, batch, width, alone):
    in_group(rank, world, port)
    if ("ddp", batch, width, alone) not in made:
        made["ddp", batch, width, alone] = make_ddp(batch, width, alone)
    dist.barrier()
    return timed(n, made["ddp", batch, width, alone])


def ddp_steps(n, batch, width, alone=0):
    """Steps of both ranks at once; alone: without a word between them."""
    return on_all_ranks(ddp_steps_here, n, batch, width, alone)


PR_SET_PDEATHSIG = 1


def joined(rank, size, port, ready, end):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
    ready.put(rank)
    end.wait()
    rpc.shutdown()


def launch(n, size, limit=0):
    """Seconds until `size` processes have found each other; their end is not timed. Where that takes longer than `limit` s (0: none), it is that."""
    total = 0.0
    context = mp.get_context("spawn")
    for _ in range(n):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        start = time.perf_counter()
        ready, end = context.Queue(), context.Event()
        processes = [context.Process(target=joined, args=(rank, size, port, ready, end)) for rank in range(size)]
        for process in processes:
            process.start()
        try:
            for _ in processes:
                ready.get(timeout=max(0.001, start + limit - time.perf_counter()) if limit > 0 else None)
        except queue.Empty:
            for process in processes:
                process.kill()
        total += time.perf_counter() - start
        end.set()
        for process in processes:
            process.join()
    return total


class CartPole:
    def reset(self):
        self.state, self.steps = [random.uniform(-0.05, 0.05) for _ in range(4)], 0
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * spin**2 * sin) / 1.1
        spin_up = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        acceleration = push - 0.05 * spin_up * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * acceleration, angle + 0.02 * spin, spin + 0.02 * spin_up]
        self.steps += 1
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * math.pi / 180 or self.steps >= 500


class Observer:
    """As in PyTorch's RPC tutorial: rpc_sync for every action and every reward."""

    def __init__(self):
        self.name = rpc.get_worker_info().name
        self.environment = CartPole()

    def run_episode(self, agent):
        state, ended = self.environment.reset(), False
        while not ended:
            action = rpc.rpc_sync(agent.owner(), call_method, args=(Agent.select_action, agent, self.name, state))
            state, ended = self.environment.step(action)
            rpc.rpc_sync(agent.owner(), call_method, args=(Agent.report_reward, agent, self.name, 1.0))


class Agent:
    def __init__(self, observers):
        self.self_rref = rpc.RRef(self)
        self.observers = [rpc.remote(f"worker{i + 1}", Observer) for i in range(observers)]
        self.policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.names = [f"worker{i + 1}" for i in range(observers)]

    def select_action(self, observer, state):
        odds = torch.distributions.Categorical(logits=self.policy(torch.tensor([state])))
        action = odds.sample()
        self.log_probs[observer].append(odds.log_prob(action))
        return action.item()

    def report_reward(self, observer, reward):
        self.rewards[observer].append(reward)

    def run_episode(self):
        self.log_probs, self.rewards = ({name: [] for name in self.names} for _ in range(2))
        rpcs = [rpc.rpc_async(o.owner(), call_method, args=(Observer.run_episode, o, self.self_rref)) for o in self.observers]
        torch.futures.wait_all(rpcs)
        log_probs, returns = [], []
        for name in self.names:
            value, discounted = 0.0, []
            for reward in reversed(self.rewards[name]):
                value = reward + 0.99 * value
                discounted.insert(0, value)
            log_probs += self.log_probs[name]
            returns += discounted
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        self.optimizer.zero_grad(set_to_none=True)
        (-torch.cat(log_probs) * returns).sum().backward()
        self.optimizer.step()
        return len(returns)


def call_method(method, rref, *args):
    return method(rref.local_value(), *args)


agents = {}


def rl_steps(n, observers):
    if observers not in agents:
        agents[observers] = Agent(observers)
    agent = agents[observers]
    start, steps = time.perf_counter(), 0
    while steps < n:
        steps += agent.run_episode()
    return (time.perf_counter() - start) * n / steps


WORK = {
    f.__name__: f
    for f in (
        round_trip, remote_to_here, rl_steps, pipelined, design_note, ping_pong_backward, local_forward, local_backward,
        products, softmaxes, sums, tanhs, layer_norms, convolutions, cnn_steps, mlp_steps, lstm_steps, policy_steps, tiny_chain, tiny_passes, tensor_round_trips, tensors_one_way,
        launch, chains, fans, rings, concurrent, sized, rnn_steps, server_steps, together_steps, remote_parameter_steps,
        all_reduces, ddp_steps,
    )
}


def worker(rank, port, commands, world, others=()):
    # Killing the benchmark or the first process ends the second, too, even while they are stopped.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world)
    if rank == 0:
        lines = os.fdopen(commands)
        print(json.dumps({"ready": torch.__version__, "processes": [os.getpid(), *others]}), flush=True)
        for line in lines:
            command = json.loads(line)
            start = time.perf_counter()
            seconds = WORK[command["name"]](command["n"], *command["args"])
            if seconds is None:
                seconds = time.perf_counter() - start
            print(json.dumps({"seconds": seconds}), flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]
    context = mp.get_context("fork")
    world = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    others = [context.Process(target=worker, args=(rank, free_port, -1, world)) for rank in range(1, world)]
    for other in others:
        other.start()
    worker(0, free_port, os.dup(sys.stdin.fileno()), world, [other.pid for other in others])
    for other in others:
        other.join()
