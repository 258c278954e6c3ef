/**
 * Writes packages/wire/golden/wire.json: the bytes of one frame of every kind. Run it after a wanted change of the wire format (and raise
 * WIRE_VERSION if released workers would misread it); the difference then shows in review.
 *   node scripts/golden/wire.mjs
 */
import { writeFileSync } from 'node:fs'
import { goldenFrames } from '../../packages/wire/dist/golden.suite.js'

const file = new URL('../../packages/wire/golden/wire.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(goldenFrames(), null, 2)}\n`)
console.log(`wrote ${file.pathname}`)
