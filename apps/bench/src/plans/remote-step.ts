/** The row of a training step with two remote parameters, as in PyTorch's documentation of its distributed optimizer. */
import type { PassStage } from '../pass-stage.js'
import { remoteParameterSteps } from '../remote-step.js'
import type { RowPlan } from '../row.js'
import type { ThreadPair } from '../thread-pair.js'
import { microseconds, type TorchWork } from './plan.js'

/** Messages there and back that such a step cannot do without: the parameters, which are fetched at once, their gradients, the step. */
const ROUND_TRIPS = 3
/** A tenth of what PyTorch took where the aim was set, in µs. */
const AIM = 143

export function remoteStepRows(stage: PassStage, raw: ThreadPair, withTorch: TorchWork): RowPlan[] {
  return [
    {
      name: 'a training step with 2 remote parameters',
      unit: 'µs',
      n: 300,
      figure: microseconds,
      higherIsBetter: false,
      ours: stage.with(2, (worker0, n) => worker0.run(remoteParameterSteps, n)),
      limit: (n) => raw.roundTrip(ROUND_TRIPS * n),
      peers: withTorch('remote_parameter_steps', 0.2),
      aim: () => AIM,
    },
  ]
}
