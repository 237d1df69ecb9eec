import { readdirSync } from 'node:fs'
import { exitUnlessPossible } from '../scripts/required-programs.ts'
import type { Case } from './case.ts'

/**
 * Long tests with faults, for a machine of their own: npm run soak, or npm run soak -- database-cut slow-uploads. Each
 * case is a file in cases/. Needs root, because cases mount small file systems and set limits.
 */
const folder = new URL('./cases/', import.meta.url)
const all = readdirSync(folder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
const requested = process.argv.slice(2)
const unknown = requested.filter((name) => !all.includes(name))
if (unknown.length > 0) {
  process.stderr.write(`There is no case ${unknown.join(', ')}. There are: ${all.join(', ')}.\n`)
  process.exit(2)
}

exitUnlessPossible({ programs: ['clamd', 'faketime', 'mount', 'prlimit'], asRoot: true })

// Services that a case started end with the `exit` event, which a signal alone would skip.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

type Row = { name: string; held: boolean; seconds: number; observed: string }
const rows: Row[] = []
for (const name of requested.length > 0 ? requested : all) {
  const { soak } = (await import(new URL(`${name}.ts`, folder).href)) as { soak: Case }
  process.stdout.write(`\n# ${name}: ${soak.about}\n`)
  const startedAt = performance.now()
  const end = await soak.run().then(
    (observed) => ({ held: true, observed }),
    (error: Error) => ({ held: false, observed: error.stack ?? String(error) }),
  )
  rows.push({ name, ...end, seconds: Math.round((performance.now() - startedAt) / 1000) })
  process.stdout.write(`${end.held ? 'held' : 'BROKE'}: ${end.observed}\n`)
}
process.stdout.write(`\n${toTable(rows)}`)
process.exit(rows.every(({ held }) => held) ? 0 : 1)

function toTable(rows: Row[]): string {
  const lines = rows.map(({ name, held, seconds, observed }) => {
    const [first = ''] = observed.split('\n')
    return `| ${name} | ${held ? 'held' : 'BROKE'} | ${seconds} s | ${first} |\n`
  })
  return `| Case | Invariants | Took | Observed |\n| --- | --- | --- | --- |\n${lines.join('')}`
}
