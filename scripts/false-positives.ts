import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { collectNeutralPictures, collectPicturesOfPeople } from './neutral-pictures.ts'
import { type OpenedProfile, openProfiles } from './open-profiles.ts'

/**
 * `node scripts/false-positives.ts [profile...]` scans the neutral pictures and those of people, lists each one that a
 * profile does not call clean, and prints a table of shares and costs. `--every 10` takes every tenth picture, from the
 * one that `--from` names on.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { every: { type: 'string' }, from: { type: 'string' } },
})
const [every, from] = [Number(values.every ?? 1), Number(values.from ?? 0)]
const pictures = { people: await collectPicturesOfPeople(), other: await collectNeutralPictures() }
const rows: string[] = []

for (const opened of await openProfiles(positionals)) {
  const results: Result[] = []
  for (const kind of ['people', 'other'] as const) {
    const chosen = pictures[kind].filter((_, i) => i % every === from)
    for (const path of chosen) results.push(await scan(opened, path, kind))
  }
  rows.push(toRow(opened.profile, results))
}
process.stdout.write(
  '| Profile | Pictures | With people | Threats | Share | Errors | Processor time, mean | Middle | 95 % |\n',
)
process.stdout.write(`|${' --- |'.repeat(9)}\n${rows.join('\n')}\n`)

type Result = Awaited<ReturnType<OpenedProfile['scan']>> & { isOfPeople: boolean }

async function scan({ profile, scan }: OpenedProfile, path: string, kind: keyof typeof pictures): Promise<Result> {
  const result = await scan(await readFile(path))
  const name = path.split('/neutral-pictures/').at(-1)
  const { status, signals, score, ms } = result
  // Errors have no score.
  if (status !== 'clean') {
    const words = status === 'threat' ? score.toFixed(2) : signals.join(' ')
    process.stdout.write(`${profile}: ${status} ${words}, ${Math.round(ms)} ms, ${name}\n`)
  }
  return { ...result, isOfPeople: kind === 'people' }
}

function toRow(profile: string, results: Result[]): string {
  const count = (status: string) => results.filter((result) => result.status === status).length
  const times = results.map(({ ms }) => ms).sort((a, b) => a - b)
  const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length
  const at = (share: number) => `${Math.round(times[Math.floor(times.length * share)] ?? 0)} ms`
  const share = `${((100 * count('threat')) / results.length).toFixed(2)} %`
  const ofPeople = results.filter(({ isOfPeople }) => isOfPeople).length
  const cells = [profile, results.length, ofPeople, count('threat'), share, count('error')]
  return `| ${[...cells, `${Math.round(mean)} ms`, at(0.5), at(0.95)].join(' | ')} |`
}
