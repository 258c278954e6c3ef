/** The templates of `postgrad new`: small projects, a folder of files for each. All have the same `tsconfig.json`; `project.ts` adds `package.json`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Name → what its project does. */
export const TEMPLATES = {
  cluster: 'a cluster of four workers: calls, and a training step through all of them',
  tests: 'tests that find a race: every order of the messages, lost messages, the program in one process',
  rl: 'reinforcement learning: an agent and two observers',
  ddp: 'data-parallel training: two trainers with a copy of the model each',
  'parameter-server': 'a parameter server: a large embedding table, of which only rows travel',
  pipeline: 'a model in two stages on two workers, with micro-batches',
  'language-model': 'a language model over two workers: embedding and decoder on one, the LSTM on the other',
} as const

export type TemplateName = keyof typeof TEMPLATES

export const isTemplate = (name: string): name is TemplateName => Object.hasOwn(TEMPLATES, name)

/** From `dist/cli/new` of the package to `dist/templates`, and from `apps/cli/dist/new` of the repository to `apps/cli/templates`. */
const FOLDER = fileURLToPath(new URL('../../templates', import.meta.url))

/** Name of each file → its text. Null: this installation lacks them. */
export function readTemplate(name: TemplateName): ReadonlyMap<string, string> | null {
  const own = join(FOLDER, name)
  if (!existsSync(own)) return null
  const files = readdirSync(own)
    .sort()
    .map((file) => [file, readFileSync(join(own, file), 'utf8')] as const)
  return new Map([...files, ['tsconfig.json', readFileSync(join(FOLDER, 'tsconfig.json'), 'utf8')]])
}
