/**
 * Each template of `postgrad new`, for `users-projects.mjs`: the installed command writes the project, into a folder with a space. It is installed from the tarball that it names, started
 * and tested, on this Node and on another one. `npm start` must print what README.md shows.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../setup.mjs'

const templates = join(root, 'apps/cli/templates')
const FOLDER = 'my project'
/** The oldest supported version is the one that runs the checks. */
const NEWER = 24

const names = readdirSync(templates, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))

export const templateProjects = Object.fromEntries(names.map((name) => [`template-${name}`, projectOf(name)]))

function projectOf(name) {
  const readme = readFileSync(join(templates, name, 'README.md'), 'utf8')
  const [, shown] = /\nYou see:\n\n```\n([\s\S]*?)\n```\n/.exec(readme)
  const [, passed] = /`pass (\d+)`/.exec(readme)
  const npm = (...args) => ['npm', '--prefix', FOLDER, ...args]
  const twice = [undefined, NEWER].flatMap((node) => [
    { command: npm('start'), shows: shown, node },
    { command: npm('test'), shows: `pass ${passed}`, node },
  ])
  return {
    dependencies: {},
    files: {},
    runs: [['postgrad', 'new', name, FOLDER], npm('install', '--no-audit', '--no-fund'), ...twice],
  }
}
