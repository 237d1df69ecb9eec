import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { toLaunch } from '../../packages/server/src/engines/jail/jail.ts'
import { toUnpackerLaunch } from '../../packages/server/src/engines/unpack/open-unpacker.ts'
import { readProcessorMs } from '../../scripts/processor-time.ts'
import type { Row } from './results.ts'

const program = fileURLToPath(new URL('../../packages/server/src/engines/unpack/child/main.ts', import.meta.url))
const rounds = 5
const startsOfRound = 10

/** Processor time of starting an unpacking process that ends at once, with and without its jail. */
export async function benchJail(): Promise<Row[]> {
  const { args } = toUnpackerLaunch(program)
  const jail = JSON.parse(args.at(-1) ?? '')
  const [command = '', ...words] = jail.command as string[]
  const plain = { command, args: words }
  const jailed = [
    { by: 'Perl', launch: toLaunch('perl', jail) },
    { by: 'Node, where there is no Perl', launch: toLaunch('node', jail) },
  ]
  const times = [plain, ...jailed.map(({ launch }) => launch)].map(() => [] as number[])
  // The launches take turns, so that a busy machine slows down all of them.
  for (let round = 0; round < rounds; round++) {
    for (const [index, launch] of [plain, ...jailed.map(({ launch }) => launch)].entries()) {
      times[index]?.push(measure(launch))
    }
  }
  const [without = 0, ...within] = times.map((list) => list.toSorted((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0)
  return jailed.map(({ by }, index) => {
    const ms = within[index] ?? 0
    return {
      what: `start of an unpacking process in its jail, launched by ${by}, processor time`,
      ours: `${ms.toFixed(1)} ms`,
      against: `without the jail: ${without.toFixed(1)} ms`,
      ratio: ms / without,
      wanted:
        index === 0 ? `at most 30 ms more; ${(ms - without).toFixed(1)} ms` : `${(ms - without).toFixed(1)} ms more`,
    }
  })
}

/** The socket to the service is closed from the beginning, so the process ends when it is ready. */
function measure({ command, args }: { command: string; args: string[] }): number {
  const before = readProcessorMs()
  for (let start = 0; start < startsOfRound; start++) {
    const { status, stderr } = spawnSync(command, args, {
      cwd: '/',
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'ignore', 'pipe', 'ignore'],
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`The unpacking process ended with ${status}: ${stderr}`)
  }
  return (readProcessorMs() - before) / startsOfRound
}
