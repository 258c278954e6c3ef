/** The examples of the installed package, for `users-projects.mjs`: each runs, small, by `postgrad example`, in a folder of a user, on this Node and on another one. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../setup.mjs'

const names = Object.keys(JSON.parse(readFileSync(join(root, 'apps/examples/examples.json'), 'utf8')))
const NEWER = 24

/** So that each takes a second or two. */
const OPTIONS = {
  'char-lm': ['--seconds', '1'],
  ddp: ['--epochs', '1', '--samples', '32'],
  'ddp-elastic': ['--steps', '30', '--round-steps', '5', '--batch', '6'],
  'ddp-hybrid': ['--steps', '3'],
  'design-note': ['--steps', '2'],
  mlp: ['--steps', '3', '--layers', '2', '--points', '10'],
  'parameter-server': ['--steps', '3', '--users', '500', '--batch', '16'],
  pipeline: ['--steps', '2', '--layers', '2', '--batch', '8', '--width', '16', '--context', '8'],
  rl: ['--episodes', '3', '--observers', '2'],
  rnn: ['--epochs', '2', '--batches', '2', '--hidden', '8'],
}

/** The last line that each prints names its picture, in the folder of the user. */
const runs = (node) =>
  names.map((name) => ({ command: ['postgrad', 'example', name, ...OPTIONS[name]], shows: `: ${join('out', `${name}.svg`)}`, node }))

export const exampleProjects = { 'the examples': { dependencies: {}, files: {}, runs: [...runs(), ...runs(NEWER)] } }
