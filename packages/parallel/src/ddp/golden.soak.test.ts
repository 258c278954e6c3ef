/** All cases; `golden.sim` runs some. */
import { test } from '@jest/globals'
import { golden, hooked, nameOf, trainsAs, trainsInHalves } from './golden.suite.js'

test.each(golden.cases.map((each) => [nameOf(each), each] as const))('DDP-40 50 steps are those of PyTorch: %s', (_, each) =>
  trainsAs(each),
)

test.each(hooked.cases.map((each) => [each.size, each] as const))('DDP-54 the same with gradients as float16: %i ranks', (_, each) =>
  trainsInHalves(each),
)
