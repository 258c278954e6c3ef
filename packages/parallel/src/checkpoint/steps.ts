/** The steps in a directory of checkpoints: which are complete, and which a save removes. Used by `checkpoints.ts`. */
import { join } from 'node:path'
import { isPostgradError } from '@postgrad/base'
import type { CheckpointDisk } from './disk.js'
import { filesOf, isOurs, MANIFEST, type Manifest, manifestIfAny, stepDirectory, stepOf } from './manifest.js'
import { checkFile } from './restore.js'

/** A step that is there whole. */
export interface Step {
  readonly directory: string
  readonly manifest: Manifest
}

/** Entries of the directories before a save. */
export interface Before {
  readonly steps: readonly string[]
  readonly files: readonly string[]
}

export class Steps {
  private readonly disk: CheckpointDisk
  private readonly directory: string

  constructor(disk: CheckpointDisk, directory: string) {
    this.disk = disk
    this.directory = directory
  }

  /** Of directories with a manifest whose files are there with their lengths, the newest last. @throws CHECKPOINT_UNSUPPORTED (a later version wrote one) */
  async whole(hashed: boolean): Promise<Step[]> {
    const found: Step[] = []
    for (const step of await this.numbers()) {
      const one = await this.withManifest(step)
      if (one !== null && (await this.isWhole(one, hashed))) found.push(one)
    }
    if (found.length > 0) return found
    const one = await this.newest(hashed)
    return one === null ? [] : [one]
  }

  /** The newest of them. */
  async newest(hashed: boolean): Promise<Step | null> {
    return await this.search((one) => this.isWhole(one, hashed))
  }

  /** The newest with a manifest, whatever its files are like. */
  async newestOfAll(): Promise<Step | null> {
    return await this.search(async () => true)
  }

  /** The newest that fits. A save may remove the last one that was listed before it is read, so this looks again until nothing has changed between two looks. */
  private async search(fits: (one: Step) => Promise<boolean>): Promise<Step | null> {
    for (let before = ''; ; ) {
      let seen = ''
      for (const step of (await this.numbers()).reverse()) {
        const one = await this.withManifest(step)
        if (one !== null && (await fits(one))) return one
        seen += `${step} ${one === null ? 'none' : filesOf(one.manifest)[0]?.file} `
      }
      if (seen === before) return null
      before = seen
    }
  }

  async before(step: number): Promise<Before> {
    return { steps: await this.disk.list(this.directory), files: await this.disk.list(stepDirectory(this.directory, step)) }
  }

  /**
   * Removes what is not needed any more: other files of this step, earlier steps that have no manifest, whole ones beyond `keep`. Of this step only files that were there before this
   * save: as soon as its manifest is written another save may begin, if the worker that holds the lock ends. Only files that a save has named are removed, and folders that are empty
   * then. A step whose manifest or files are damaged stays, for the user to look at.
   */
  async clean(step: number, manifest: Manifest, before: Before, keep: number): Promise<void> {
    const needed = new Set([MANIFEST, ...filesOf(manifest).map(({ file }) => file)])
    await this.removeFiles(
      stepDirectory(this.directory, step),
      before.files.filter((name) => !needed.has(name)),
    )
    const whole: number[] = []
    for (const each of await this.numbers()) {
      const one = await this.withManifest(each, true)
      if (one !== null && (await this.isWhole(one, false))) whole.push(each)
    }
    // The step that was just saved is kept, even if the run continued from an old one and newer ones are there.
    const old = new Set(whole.filter((each) => each !== step).slice(0, Math.max(0, whole.length - keep)))
    for (const each of old) await this.disk.remove(join(stepDirectory(this.directory, each), MANIFEST))
    for (const name of before.steps) {
      const other = stepOf(name)
      if (other === null || other === step) continue
      const directory = join(this.directory, name)
      const files = await this.disk.list(directory)
      if (files.includes(MANIFEST) || !(old.has(other) || other < step)) continue
      await this.removeFiles(directory, files)
      await this.disk.removeEmpty(directory)
    }
  }

  /** Of an attempt that has failed, also those that are not finished. */
  async removeAttempt(step: number, attempt: string): Promise<void> {
    const directory = stepDirectory(this.directory, step)
    await this.removeFiles(
      directory,
      (await this.disk.list(directory)).filter((name) => name.includes(`.${attempt}.`)),
    )
    await this.disk.removeEmpty(directory)
  }

  private async removeFiles(directory: string, names: readonly string[]): Promise<void> {
    for (const name of names) if (isOurs(name)) await this.disk.remove(join(directory, name))
  }

  private async numbers(): Promise<number[]> {
    const names = await this.disk.list(this.directory)
    return names
      .map(stepOf)
      .filter((step) => step !== null)
      .sort((a, b) => a - b)
  }

  private async withManifest(step: number, alsoLater = false): Promise<Step | null> {
    const directory = stepDirectory(this.directory, step)
    const manifest = await manifestIfAny(this.disk, directory, step, alsoLater)
    return manifest === null ? null : { directory, manifest }
  }

  private async isWhole({ directory, manifest }: Step, hashed: boolean): Promise<boolean> {
    try {
      for (const file of filesOf(manifest)) await checkFile(this.disk, directory, file, hashed)
      return true
    } catch (error) {
      if (isPostgradError(error, 'CHECKPOINT_CORRUPT')) return false
      throw error
    }
  }
}
