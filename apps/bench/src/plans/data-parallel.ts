/** Rows of data-parallel training: a step of an MLP on two ranks, with and without overlap, against the same step without communication, and PyTorch's over gloo. */
import { ddpSteps, type StepMode } from '../data-parallel.js'
import type { PassStage } from '../pass-stage.js'
import type { Contestant, RowPlan } from '../row.js'
import { microseconds, type TorchWork } from './plan.js'

/** Of each rank. */
const BATCH = 128
/** 1 MB of parameters, which are one bucket, and 7.5 MB, which are two. */
const WIDTHS = [256, 1024] as const
/** Communication is to be hidden but for this share of a local step. */
const SHOWN_MAX = 0.1

export function dataParallelRows(stage: PassStage, between: PassStage, withTorch: TorchWork): RowPlan[] {
  const row = (name: string, width: number, ours: Contestant, limit: Contestant, withPeer: boolean): RowPlan => ({
    name,
    ...{ unit: 'µs', n: width > 512 ? 5 : 20, turnsMax: 9, figure: microseconds, higherIsBetter: false, ours, limit },
    // PyTorch's step with DDP, and the same without: its own ratio.
    peers: withPeer ? { ...withTorch('ddp_steps', 1, BATCH, width), ...alone(withTorch('ddp_steps', 1, BATCH, width, 1)) } : {},
    aim: (local) => (1 + SHOWN_MAX) * local,
  })
  return WIDTHS.flatMap((width) => {
    const steps = (of: PassStage, mode: StepMode): Contestant => of.with(2, (worker0, n) => worker0.run(ddpSteps, n, mode, BATCH, width))
    const of = (where: string, at: PassStage): RowPlan[] => [
      row(`a DDP step of an MLP ${width} wide, ${where}`, width, steps(at, 'ddp'), steps(at, 'local'), true),
      ...(width > 256
        ? [row(`a DDP step of an MLP ${width} wide, ${where}, no overlap`, width, steps(at, 'late'), steps(at, 'local'), false)]
        : []),
    ]
    return [...of('2 ranks', stage), ...of('2 ranks in 2 processes', between)]
  })
}

const alone = (peers: RowPlan['peers']): RowPlan['peers'] =>
  Object.fromEntries(Object.entries(peers).map(([name, peer]) => [`${name} local`, peer]))
