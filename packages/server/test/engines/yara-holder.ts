import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { BackendName } from '../../src/engines/yara/requests.ts'
import { openYaraEngine } from '../../src/engines/yara/yara-engine.ts'
import { endlessRule, listYaraPids, noAbort, slowBytes, toContent } from './yara-support.ts'

/** Starts an endless scan, prints the process id of its YARA process, and waits to be killed. */
const rulesDir = mkdtempSync(join(tmpdir(), 'assay-yara-'))
writeFileSync(join(rulesDir, 'endless.yar'), endlessRule)
const engine = await openYaraEngine({
  rulesDirs: [rulesDir],
  shipped: [],
  log: pino({ level: 'silent' }),
  backend: process.argv[2] as BackendName,
  processes: 1,
})
rmSync(rulesDir, { recursive: true })
const scan = engine.scan(toContent(slowBytes), noAbort)
// The scan is sent to the process after one turn of the event loop.
setImmediate(() => console.log(listYaraPids()[0]))
await scan
