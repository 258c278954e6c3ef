/** Two network namespaces with a link that can be cut: two hosts for the processes in them. Needs Linux, and the right to make namespaces. */
import { execFileSync } from 'node:child_process'

const ADDRESSES = ['10.99.0.1', '10.99.0.2'] as const

export class TwoHosts {
  readonly addresses = ADDRESSES
  private readonly names: readonly [string, string]

  private constructor(names: readonly [string, string]) {
    this.names = names
  }

  /** @throws with what the command has said, where they cannot be made */
  static make(): TwoHosts {
    const hosts = new TwoHosts([`postgrad-a-${process.pid}`, `postgrad-b-${process.pid}`])
    const [a, b] = hosts.names
    try {
      for (const name of hosts.names) ip('netns', 'add', name)
      ip('link', 'add', 'veth0', 'netns', a, 'type', 'veth', 'peer', 'name', 'veth0', 'netns', b)
      for (const [i, name] of hosts.names.entries()) {
        ip('-n', name, 'addr', 'add', `${ADDRESSES[i]}/24`, 'dev', 'veth0')
        ip('-n', name, 'link', 'set', 'lo', 'up')
        ip('-n', name, 'link', 'set', 'veth0', 'up')
      }
      return hosts
    } catch (error) {
      hosts.close()
      throw error
    }
  }

  /** The prefix of a command that runs in one of them. */
  through(host: 0 | 1): readonly string[] {
    return ['ip', 'netns', 'exec', this.names[host]]
  }

  cut(): void {
    ip('-n', this.names[1], 'link', 'set', 'veth0', 'down')
  }

  heal(): void {
    ip('-n', this.names[1], 'link', 'set', 'veth0', 'up')
  }

  close(): void {
    for (const name of this.names) {
      try {
        ip('netns', 'del', name)
      } catch {
        // It was never made.
      }
    }
  }
}

/** Null if they can be made here; else why not. */
export function whyNoNamespaces(): string | null {
  try {
    TwoHosts.make().close()
    return null
  } catch (error) {
    return (error as Error).message.trim()
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
