/** Our side of the rows of tensors between processes; `program.ts` has the calls. */
import { call, expose, rand, type Tensor } from 'postgrad'
// One program on the workers: the calls' part comes with it.
import '../program.js'

export const take = (x: Tensor) => x.close()

/** A tensor of that many elements there, and the word that it has come, n times. */
export async function tensorsOneWay(n: number, length: number): Promise<number> {
  const x = rand([length])
  const started = performance.now()
  for (let i = 0; i < n; i++) await call('worker1', take, [x])
  return (performance.now() - started) / 1000
}

expose({ take, tensorsOneWay })
