/**
 * Writes packages/testing-cases/golden/programs.json: the random distributed programs of the first seeds with PyTorch's numbers. The file keeps their text, so
 * a change of the generator does not change them: existing programs get their numbers again, missing ones are made. Run after `npm run build`, with PyTorch 1.13 (Debian 12's python3-torch):
 * `node scripts/golden/dist_programs.mjs`; PYTHON names another interpreter.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { generate } from '../../packages/testing-cases/dist/programs/generate.js'

/** With one pass, and with several roots and passes. */
const [SINGLE, SEVERAL] = [500, 60]
const COUNT = SINGLE + SEVERAL
const python = process.env.PYTHON ?? '/usr/bin/python3'

const file = new URL('../../packages/testing-cases/golden/programs.json', import.meta.url)
const kept = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).programs : []
const optionsOf = (seed) => (seed < SINGLE ? { single: true } : { plain: true, rootsMin: 3, passesMin: 2 })
const programs = Array.from({ length: COUNT }, (_, seed) => kept[seed]?.program ?? generate(seed, optionsOf(seed)))
const input = programs.map((program) => `${JSON.stringify(program)}\n`).join('')
const script = new URL('dist_programs.py', import.meta.url).pathname
const torch = execFileSync(python, ['-c', 'import torch; print(torch.__version__)'], { encoding: 'utf8' }).trim()
const results = execFileSync(python, [script], { input, encoding: 'utf8', maxBuffer: 1 << 28 })
  .trim()
  .split('\n')
const lines = programs.map((program, seed) => JSON.stringify({ seed, program, torch: JSON.parse(results[seed]) }))
const head = JSON.stringify({ by: 'scripts/golden/dist_programs.mjs', torch })
writeFileSync(file, `${head.slice(0, -1)}, "programs": [\n${lines.join(',\n')}\n]}\n`)
console.log(`${COUNT} programs`)
