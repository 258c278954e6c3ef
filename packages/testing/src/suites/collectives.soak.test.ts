/** All orders; `collectives.sim` runs a part of them. */
import { expect, test } from '@jest/globals'
import { everyOrder, PROGRAMS } from './collectives.suite.js'

test.each(PROGRAMS)('PG-10, PG-12: %s gives the same bits in every order', async (name, program) => {
  const found = await everyOrder(program, 200_000)
  console.log(`${name}: ${found.text}`)
  expect(found.exhausted).toBe(true)
})
