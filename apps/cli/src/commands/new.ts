/** `postgrad new`: writes a small project for one use of postgrad, or lists these uses. */
import { statSync } from 'node:fs'
import { basename, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, InvalidArgumentError } from 'commander'
import { EXIT } from '../exit-codes.js'
import { dependencyIn, installedAs, type Source } from '../new/dependency.js'
import { type Manager, packageName, projectFiles } from '../new/project.js'
import { isTemplate, readTemplate, TEMPLATES } from '../new/templates.js'
import { refusal, writeProject } from '../new/write-project.js'
import { nameLines } from '../output/name-lines.js'
import { similarNames } from '../similar.js'
import { type CommandContext, command } from './context.js'

const LIKE_MIN = 2
const HERE = fileURLToPath(new URL('.', import.meta.url))

interface Options {
  readonly tarball?: string
  readonly json?: true
}

export function newCommand({ around: { stdout, stderr, env }, exitWith }: CommandContext): Command {
  const own = command('new', 'write a small project that uses postgrad, or list what there is', HELP)
    .argument('[template]', 'cluster, say; without a template it lists all')
    .argument('[folder]', 'new or empty; default: the name of the template')
    .option('--tarball <file>', "postgrad's tarball; default: the one that this installation was made from", tarballOf)
    .option('--json', 'the list as an array of { name, about }')
  return own.action((template: string | undefined, folder: string | undefined, { tarball, json }: Options) => {
    const list = Object.entries(TEMPLATES)
    if (json)
      return void stdout.write(
        `${JSON.stringify(
          list.map(([name, about]) => ({ name, about })),
          null,
          2,
        )}\n`,
      )
    if (template === undefined) return void stdout.write(`${nameLines(list)}${NEXT}`)
    if (!isTemplate(template)) return refuse(unknownText(template), EXIT.usage)
    const files = readTemplate(template)
    if (files === null) return refuse('the templates are missing in this installation. Install postgrad again.')
    const target = resolve(folder ?? template)
    const shown = relative('', target) || '.'
    const why = refusal(target)
    if (why !== null) return refuse(`${shown} ${why}. Name another folder: npx postgrad new ${template} <folder>`)
    const source: Source | null = tarball !== undefined ? { path: tarball } : installedAs([HERE, process.cwd()])
    if (source === null)
      return refuse(`cannot find out from which file postgrad was installed here. Name its tarball: ${withTarball(template, folder)}`)
    const lack = 'path' in source ? lackOf(source.path, tarball !== undefined) : null
    if (lack !== null) return refuse(`${lack}. Name postgrad's tarball: ${withTarball(template, folder)}`)
    const manager: Manager = env.npm_config_user_agent?.startsWith('pnpm/') ? 'pnpm' : 'npm'
    const project = projectFiles(files, packageName(basename(target)), dependencyIn(target, source), manager)
    try {
      writeProject(target, project)
    } catch (error) {
      return refuse(`cannot write into ${shown}: ${(error as Error).message}. Nothing was left there.`)
    }
    stdout.write(
      `${shown}: ${[...project.keys()].join(', ')}\n\nNext:\n${shown === '.' ? '' : `  cd ${quoted(shown)}\n`}${stepsOf(manager)}`,
    )
  })

  function refuse(text: string, code: number = EXIT.failed): void {
    stderr.write(`postgrad new: ${text}\n`)
    exitWith(code)
  }
}

function unknownText(name: string): string {
  const similar = similarNames(name, Object.keys(TEMPLATES), LIKE_MIN)
  return `unknown template '${name}'. ${similar.length > 0 ? `Similar: ${similar.join(', ')}. ` : ''}'postgrad new' lists all.`
}

const withTarball = (template: string, folder = ''): string =>
  `npx postgrad new ${[template, folder].filter(Boolean).map(quoted).join(' ')} --tarball <file>`

/** @throws InvalidArgumentError */
function tarballOf(file: string): string {
  if (!/\.(tgz|tar\.gz)$/i.test(file)) throw new InvalidArgumentError('Name a file that ends in .tgz or .tar.gz.')
  return resolve(file)
}

/** Why no package can be installed from a path; null: one can. @param isGiven whether the user named it. An installation may be of a folder as well. */
function lackOf(path: string, isGiven: boolean): string | null {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return `${path}${isGiven ? '' : ', from which postgrad was installed,'} does not exist`
  return isGiven && !found.isFile() ? `${path} is not a file` : null
}

/** As a shell takes it: one word. The shell runs no part of it, and `cd` takes it for a folder, not for an option. */
function quoted(text: string): string {
  const word = text.startsWith('-') ? `./${text}` : text
  if (process.platform === 'win32') return /^[\w./\\:-]+$/.test(word) ? word : `"${word}"`
  return /^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

const stepsOf = (manager: Manager): string => ['install', 'start', 'test'].map((step) => `  ${manager} ${step}\n`).join('')

const NEXT = `
Write one: npx postgrad new cluster my-cluster
`

const HELP = `
Examples:
  $ postgrad new                       lists all templates
  $ postgrad new rl                    writes the folder rl
  $ postgrad new rl my-agent           writes the folder my-agent

Then, in the new folder: npm install, npm start, npm test. Its README.md says more.
Exit code 1: nothing was written; 2: the template is unknown, or --tarball names no tarball.`
