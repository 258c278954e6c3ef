/** Rows of calls and of distributed passes, and what a node of the graph costs. */
import type { Controller } from 'postgrad'
import * as program from '../program.js'
import type { RowPlan } from '../row.js'
import type { ThreadPair } from '../thread-pair.js'
import { microseconds, type TorchWork } from './plan.js'

export function callRows(worker0: Controller, raw: ThreadPair, comlink: ThreadPair, withTorch: TorchWork): RowPlan[] {
  return [
    {
      name: 'round trip of an empty call',
      unit: 'µs',
      n: 2000,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(program.roundTrip, n),
      limit: raw.roundTrip,
      peers: { comlink: { run: comlink.roundTrip }, ...withTorch('round_trip', 0.1) },
      aim: (limit) => 1.5 * limit,
    },
    {
      name: 'remote + toHere of an empty function',
      unit: 'µs',
      n: 2000,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(program.remoteToHere, n),
      limit: raw.roundTrip,
      peers: withTorch('remote_to_here', 0.05),
      aim: () => null,
    },
    {
      name: 'pipelined calls',
      unit: 'calls/s',
      n: 50_000,
      figure: (seconds, n) => n / seconds,
      higherIsBetter: true,
      ours: (n) => worker0.run(program.pipelined, n),
      limit: raw.pipelined,
      peers: { comlink: { run: comlink.pipelined, share: 0.2 }, ...withTorch('pipelined', 0.04) },
      aim: () => 300_000,
    },
    {
      name: "the design note's whole pass",
      unit: 'µs',
      n: 500,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(program.designNote, n),
      limit: raw.roundTrip,
      peers: withTorch('design_note', 0.2),
      aim: (limit) => 5 * limit,
    },
    {
      name: 'backward of the ping-pong graph, per hop there and back',
      unit: 'µs',
      n: 200,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(program.pingPongBackward, n),
      limit: raw.roundTrip,
      peers: withTorch('ping_pong_backward', 0.5),
      aim: (limit) => 1.8 * limit,
    },
    {
      name: 'local forward per node, 3×3 adds',
      unit: 'µs',
      n: 2000,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(program.localForward, n),
      limit: (n) => worker0.run(program.additions, n),
      peers: withTorch('local_forward', 1),
      aim: () => 1,
    },
    {
      name: 'local backward per node, 3×3 adds',
      unit: 'µs',
      n: 2000,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(program.localBackward, n),
      limit: (n) => worker0.run(program.additions, n),
      peers: withTorch('local_backward', 1),
      aim: () => 1,
    },
  ]
}
