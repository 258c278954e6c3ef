/** A name that is imported from a door that does not have it: the error says where it is. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, expect, test } from '@jest/globals'
import { launch } from '../index.js'

const project = mkdtempSync(join(realpathSync(tmpdir()), 'postgrad-doors-'))
mkdirSync(join(project, 'node_modules'))
symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(project, 'node_modules/postgrad'), 'junction')

afterAll(() => rmSync(project, { recursive: true }))

async function errorOf(name: string, door: string): Promise<string> {
  const program = join(project, `${name}.mjs`)
  writeFileSync(program, `import { ${name} } from '${door}'\nexport const found = ${name}\n`)
  const failed = launch(pathToFileURL(program), { workers: 1 })
  await expect(failed).rejects.toMatchObject({ code: 'LAUNCH_FAILED' })
  return failed.then(
    () => '',
    ({ message }: Error) => message,
  )
}

test.each([
  ['SGD', 'postgrad/nn', 'postgrad/optim'],
  ['conv2d', 'postgrad', 'postgrad/nn/functional'],
  ['launch', 'postgrad/testing', 'postgrad'],
])('LAUNCH_FAILED of a program that looks for %s in %s names %s', async (name, door, right) => {
  expect(await errorOf(name, door)).toContain(`'${door}' does not provide an export named '${name}'; it is in '${right}' (`)
})

test('LAUNCH_FAILED names no door where none has it', async () => {
  expect(await errorOf('SGDD', 'postgrad/optim')).toContain(`'postgrad/optim' does not provide an export named 'SGDD' (`)
})
