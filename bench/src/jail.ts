import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { toUnpackerLaunch } from '../../packages/server/src/engines/unpack/open-unpacker.ts'
import { readProcessorMs } from '../../scripts/processor-time.ts'
import type { Row } from './results.ts'

const program = fileURLToPath(new URL('../../packages/server/src/engines/unpack/child/main.ts', import.meta.url))
const rounds = 5
const startsOfRound = 10

/** Processor time of starting an unpacking process that ends at once, with and without its jail. */
export async function benchJail(): Promise<Row[]> {
  const jailed = toUnpackerLaunch(program)
  const jail = JSON.parse(jailed.args.find((word) => word.startsWith('{')) ?? '')
  const [command = '', ...args] = jail.command as string[]
  const times = { jailed: [] as number[], plain: [] as number[] }
  // The launches take turns, so that a busy machine slows down both.
  for (let round = 0; round < rounds; round++) {
    times.jailed.push(measure(jailed))
    times.plain.push(measure({ command, args }))
  }
  const toMedian = (list: number[]) => list.toSorted((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0
  const [within, without] = [toMedian(times.jailed), toMedian(times.plain)]
  return [
    {
      what: 'start of an unpacking process in its jail, processor time',
      ours: `${within.toFixed(1)} ms`,
      against: `without the jail: ${without.toFixed(1)} ms`,
      ratio: within / without,
      wanted: `at most 30 ms more; ${(within - without).toFixed(1)} ms`,
    },
  ]
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
