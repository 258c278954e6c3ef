/** Rows of distributed training, step by step: PyTorch's RNN example, and a parameter server that sends only rows. */
import { others, type PassStage } from '../pass-stage.js'
import type { LazyTorch } from '../peers/torch-peer.js'
import type { RowPlan } from '../row.js'
import type { ThreadPair } from '../thread-pair.js'
import { rnnSteps, serverSteps, togetherSteps } from '../training.js'
import { microseconds, type TorchWork } from './plan.js'

/** Messages there and back that a step cannot do without: two calls, their gradients, the optimizer; one call less at the server of tables. */
const RNN_ROUND_TRIPS = 5
const SERVER_ROUND_TRIPS = 3
const BATCHES = [32, 512] as const
const TRAINERS = 3
const TOGETHER_BATCH = 128

export function trainingRows(stage: PassStage, raw: ThreadPair, withTorch: TorchWork, wide: LazyTorch | null): RowPlan[] {
  const row = (name: string, roundTrips: number, ours: RowPlan['ours'], peers: RowPlan['peers']): RowPlan => ({
    name,
    unit: 'µs',
    n: 100,
    figure: microseconds,
    higherIsBetter: false,
    ours,
    limit: (n) => raw.roundTrip(roundTrips * n),
    peers,
    aim: () => null,
  })
  return [
    row(
      "a step of PyTorch's RNN example",
      RNN_ROUND_TRIPS,
      stage.with(2, (worker0, n) => worker0.run(rnnSteps, n)),
      withTorch('rnn_steps', 0.2),
    ),
    ...BATCHES.map((batch) =>
      row(
        `a parameter server's step, 2 × ${batch} rows of 200,000`,
        SERVER_ROUND_TRIPS,
        stage.with(2, (worker0, n) => worker0.run(serverSteps, n, batch)),
        withTorch('server_steps', 0.5, batch),
      ),
    ),
    row(
      `a step of ${TRAINERS} trainers together, 2 × ${TOGETHER_BATCH} rows each`,
      TRAINERS * SERVER_ROUND_TRIPS,
      stage.with(1 + TRAINERS, (worker0, n) => worker0.run(togetherSteps, n, TOGETHER_BATCH, others(TRAINERS))),
      wide === null ? {} : { [wide.name]: { run: wide.work(1 + TRAINERS, 'together_steps', TOGETHER_BATCH, TRAINERS), share: 0.2 } },
    ),
  ]
}
