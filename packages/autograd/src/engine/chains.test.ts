/** Functions that `compile` made, next to what they were made of: values, gradients, hooks and errors have the same bits. */
import { expect, test } from '@jest/globals'
import { compile } from '@postgrad/tensor'
import { withChainsFrom } from '@postgrad/tensor/internal'
import type { Program } from '../with-torch/builder.fixture.js'
import { randomProgram } from '../with-torch/program.fixture.js'
import { runUnseen } from '../with-torch/run.fixture.js'

/** Half of the programs compute in float32, whose chains are computed in registers. */
function programOf(seed: number): Program {
  const program = randomProgram(seed)
  return seed % 2 === 0 ? program : { ...program, leaves: program.leaves.map((leaf) => ({ ...leaf, dtype: 'float32' as const })) }
}

const GROUP = 100
test.each([1, 101, 201, 301, 401])(
  'CHAIN-1 random graphs, seeds from %d on: compiled, they have the same values, gradients, hooks and errors',
  (first) => {
    const wrong: string[] = []
    for (let seed = first; seed < first + GROUP; seed++) {
      const program = programOf(seed)
      const expected = runUnseen(program)
      const found = withChainsFrom(1, () => compile(runUnseen)(program))
      try {
        expect(found).toStrictEqual(expected)
      } catch (error) {
        wrong.push(`seed ${seed}: ${String(error)}`)
      }
    }
    expect(wrong).toEqual([])
  },
)
