import { exitUnlessPossible } from '../../scripts/required-programs.ts'
import { benchAdmission } from './admission.ts'
import { benchCli } from './cli.ts'
import { benchCluster } from './cluster.ts'
import { benchCurve } from './curve.ts'
import { benchDatabase } from './database.ts'
import { benchExternalEngines } from './external-engines.ts'
import { benchFalsePositives } from './false-positives.ts'
import { benchHashes } from './hashes.ts'
import { benchHistory } from './history.ts'
import { benchHttpProcesses } from './http-processes.ts'
import { benchJail } from './jail.ts'
import { benchJobs } from './jobs.ts'
import { benchMalware } from './malware.ts'
import { benchMediaTypes } from './media-types.ts'
import { benchNeighbours } from './neighbours.ts'
import { benchNsfw } from './nsfw.ts'
import { benchNsfwParity } from './nsfw-parity.ts'
import { benchPing } from './ping.ts'
import { type Row, toMarkdown } from './results.ts'
import { benchStart } from './start.ts'
import { benchStored } from './stored.ts'

/** `npm run bench` runs all benchmarks, `npm run bench -- ping` one of them. `malware` and `jobs` have options. */
const benches: Record<string, (options: string[]) => Promise<Row[]>> = {
  admission: benchAdmission,
  cli: benchCli,
  cluster: benchCluster,
  curve: benchCurve,
  database: benchDatabase,
  'external-engines': benchExternalEngines,
  'false-positives': benchFalsePositives,
  hashes: benchHashes,
  history: benchHistory,
  'http-processes': benchHttpProcesses,
  jail: benchJail,
  jobs: benchJobs,
  malware: benchMalware,
  'media-types': benchMediaTypes,
  neighbours: benchNeighbours,
  nsfw: benchNsfw,
  'nsfw-parity': benchNsfwParity,
  ping: benchPing,
  start: benchStart,
  stored: benchStored,
}

exitUnlessPossible({ programs: ['clamd', 'file', 'ps'] })
const args = process.argv.slice(2)
const firstOption = args.findIndex((word) => word.startsWith('--'))
const chosen = firstOption === -1 ? args : args.slice(0, firstOption)
const options = firstOption === -1 ? [] : args.slice(firstOption)
if (options.length > 0 && !['malware', 'jobs'].includes(chosen.join()))
  throw new Error('Only malware and jobs have options')
const rows: Row[] = []
for (const [name, bench] of Object.entries(benches)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue
  process.stderr.write(`${name} ...\n`)
  rows.push(...(await bench(options)))
}
if (rows.length > 0) process.stdout.write(`${toMarkdown(rows)}\n`)
process.exit()
