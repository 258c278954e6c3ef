/**
 * Rows of workers in processes of their own: over a Unix socket, as between processes of one machine, and over TCP, against bare sockets with as many bytes;
 * the cost of TLS, the session and the handshake; and how long processes take until they are ready.
 */
import { PassStage } from '../pass-stage.js'
import { ProcessGroup } from '../processes/process-group.js'
import { ProcessPair } from '../processes/process-pair.js'
import { bareSeconds, initSeconds, launchSeconds } from '../processes/starts.js'
import { tensorsOneWay } from '../processes/tensors.js'
import type { Over, Sizes } from '../processes/works.js'
import * as program from '../program.js'
import { type Contestant, type RowPlan, WARM_PASSES } from '../row.js'
import { microseconds, milliseconds, type TorchWork } from './plan.js'

/** Of an empty call and its answer on the wire, all heads included. */
export const CALL: Sizes = { request: 80, reply: 72 }
const MIB_64 = 64 * 2 ** 20
const ELEMENTS = MIB_64 / 4
const ONE_WAY: Sizes = { request: MIB_64, reply: CALL.reply }
const OVER: readonly (readonly [over: Over, name: string])[] = [
  ['unix', 'Unix socket'],
  ['tcp', 'TCP'],
]
const ROUND_TRIP_AIM = 1.3
const PIPELINED_AIM = 200_000
const ONE_WAY_AIM = 0.9
const NOTE_AIM = 5
const [CALLS, PIPELINED, NOTES, TENSORS, CONNECTIONS] = [2000, 50_000, 500, 4, 100]
const SIZES = [2, 4, 8, 16]
/** Each start takes as long as its answer. */
const STARTS_TURNS_MAX = 3
/** PyTorch's start counts as this long where it takes longer, in s. */
const TORCH_START_MAX = 60

const gigabytes = (seconds: number, n: number): number => (n * MIB_64) / seconds / 1e9
const perSecond = (seconds: number, n: number): number => n / seconds

/** All that runs for these rows. */
export class ProcessStage {
  /** Processes of a launch, which meet over Unix sockets. */
  readonly launched = new PassStage('processes/tensors.js', 2)
  readonly groups = { none: new ProcessGroup(), key: new ProcessGroup(2, 'key'), tls: new ProcessGroup(2, 'tls') }
  readonly sockets = { unix: new ProcessPair('socket', 'unix'), tcp: new ProcessPair('socket', 'tcp') }
  readonly link = new ProcessPair('link', 'unix')
  readonly exchange = new ProcessPair('exchange', 'unix')
  readonly dials = {
    none: new ProcessPair('exchange', 'tcp'),
    key: new ProcessPair('exchange', 'tcp', 'key'),
    tls: new ProcessPair('exchange', 'tcp', 'tls'),
  }

  /** Does that on worker0, with worker1 in another process. */
  ours(over: Over, work: (n: number, length: number) => Promise<number>, length = 0): Contestant {
    return over === 'tcp' ? this.groups.none.runs(work, length) : this.launched.with(2, (worker0, n) => worker0.run(work, n, length))
  }

  async close(): Promise<void> {
    const all = [this.launched, this.link, this.exchange, ...[this.groups, this.sockets, this.dials].flatMap((some) => Object.values(some))]
    await Promise.all(all.map((one) => one.close()))
  }
}

export function processRows(stage: ProcessStage, withTorch: TorchWork): RowPlan[] {
  return [
    ...OVER.flatMap(([over, name]) => rowsOver(stage, over, name, withTorch)),
    ...costRows(stage),
    ...SIZES.flatMap((size) => [
      startRow(`launch of ${size} processes until ready`, size, launchSeconds, withTorch('launch', 1, size, TORCH_START_MAX)),
      // Compare PyTorch in the row above.
      startRow(`init of ${size} processes until ready`, size, initSeconds, {}),
    ]),
  ]
}

/** User-level calls against a bare socket of that kind. */
function rowsOver(stage: ProcessStage, over: Over, name: string, withTorch: TorchWork): RowPlan[] {
  const raw = stage.sockets[over]
  return [
    {
      name: `round trip of an empty call between processes, ${name}`,
      ...{ unit: 'µs', n: CALLS, figure: microseconds, higherIsBetter: false },
      ours: stage.ours(over, program.roundTrip),
      limit: raw.roundTrip(CALL),
      peers: withTorch('round_trip', 0.1),
      aim: (limit) => ROUND_TRIP_AIM * limit,
    },
    {
      name: `pipelined calls between processes, ${name}`,
      ...{ unit: 'calls/s', n: PIPELINED, figure: perSecond, higherIsBetter: true },
      ours: stage.ours(over, program.pipelined),
      limit: raw.pipelined(CALL),
      peers: withTorch('pipelined', 0.04),
      aim: () => PIPELINED_AIM,
    },
    {
      name: `the design note's whole pass between processes, ${name}`,
      ...{ unit: 'µs', n: NOTES, warm: WARM_PASSES, figure: microseconds, higherIsBetter: false },
      ours: stage.ours(over, program.designNote),
      limit: raw.roundTrip(CALL),
      peers: withTorch('design_note', 0.2),
      aim: (limit) => NOTE_AIM * limit,
    },
    {
      name: `a tensor of 64 MiB one way between processes, ${name}`,
      ...{ unit: 'GB/s', n: TENSORS, figure: gigabytes, higherIsBetter: true },
      ours: stage.ours(over, tensorsOneWay, ELEMENTS),
      limit: raw.roundTrip(ONE_WAY),
      peers: withTorch('tensors_one_way', 1, ELEMENTS),
      aim: (limit) => ONE_WAY_AIM * limit,
    },
  ]
}

/** A layer's cost: with it against without it (the limit of these rows). */
function costRows(stage: ProcessStage): RowPlan[] {
  const { groups, dials, sockets } = stage
  const row = (name: string, n: number, ours: Contestant, limit: Contestant): RowPlan => ({
    name: `between processes, ${name}`,
    ...{ unit: 'µs', n, figure: microseconds, higherIsBetter: false, peers: {}, aim: () => null },
    ...{ ours, limit },
  })
  return [
    row('TLS on against off, an empty call over TCP', CALLS, groups.tls.runs(program.roundTrip), groups.none.runs(program.roundTrip)),
    {
      ...row(
        'TLS on against off, a tensor of 64 MiB one way',
        TENSORS,
        groups.tls.runs(tensorsOneWay, ELEMENTS),
        groups.none.runs(tensorsOneWay, ELEMENTS),
      ),
      ...{ unit: 'GB/s', figure: gigabytes, higherIsBetter: true },
    },
    row('a key against none, an empty call over TCP', CALLS, groups.key.runs(program.roundTrip), groups.none.runs(program.roundTrip)),
    row('a session against none, a frame there and back', CALLS, stage.exchange.roundTrip(CALL), stage.link.roundTrip(CALL)),
    row('a session against none, pipelined frames, each', PIPELINED, stage.exchange.pipelined(CALL), stage.link.pipelined(CALL)),
    row('a link against a bare socket, a frame there and back', CALLS, stage.link.roundTrip(CALL), sockets.unix.roundTrip(CALL)),
    row('a connection with its handshake, against a bare one', CONNECTIONS, dials.none.connect(CALL), sockets.tcp.connect(CALL)),
    row('a connection with a key, against one without', CONNECTIONS, dials.key.connect(CALL), dials.none.connect(CALL)),
    row('a connection with TLS, against one without', CONNECTIONS, dials.tls.connect(CALL), dials.none.connect(CALL)),
  ]
}

function startRow(name: string, size: number, ours: (size: number) => Promise<number>, peers: RowPlan['peers']): RowPlan {
  return {
    name,
    ...{ unit: 'ms', n: 1, warm: 1, turnsMax: STARTS_TURNS_MAX, figure: milliseconds, higherIsBetter: false },
    ours: () => ours(size),
    limit: () => bareSeconds(size),
    peers,
    aim: () => null,
  }
}
