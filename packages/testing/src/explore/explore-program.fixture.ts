/** Programs that other threads explore. */
import { call, expose } from '@postgrad/rpc'
import type { SimCluster } from '../simulate/simulate.js'

const double = (x: number): number => 2 * x
expose({ 'explored.double': double })

/** Each worker has the next one double a number, three times. */
export default async function ring(sim: SimCluster): Promise<number[]> {
  const three = async (to: string) => {
    let x = 1
    for (let n = 0; n < 3; n++) x = await call(to, double, [x])
    return x
  }
  return Promise.all(sim.workers.map(({ name }, i) => sim.on(name).run(three, `worker${(i + 1) % sim.workers.length}`)))
}
