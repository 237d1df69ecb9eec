import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { findChildren } from '../../../../acceptance/support/processes.ts'
import type { Content } from '../../src/domain/content/content.ts'
import { checkYaraFile } from '../../src/engines/yara/load-rules.ts'
import type { BackendName } from '../../src/engines/yara/requests.ts'
import { openYaraEngine, type YaraDeps } from '../../src/engines/yara/yara-engine.ts'

export const markerRule = 'rule marker { strings: $a = "assay-marker" condition: $a }'
export const brokenRule = 'rule broken { condition: nowhere }'
/** Evaluating its condition takes hours on content of 7 bytes. */
export const endlessRule = 'rule endless { condition: filesize == 7 and for all i in (1..1000000000000) : (i > 0) }'
export const slowBytes = Buffer.from('7 bytes')
export const noAbort = new AbortController()

/** An engine on a directory of its own, closed with the test. `pids` leaves out processes that ran before. */
export async function openTestYara(
  t: { after(close: () => Promise<void>): void },
  { rules, ...options }: { rules: Record<string, string> } & Partial<YaraDeps>,
) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-yara-'))
  const write = (name: string, text: string) => {
    const path = join(dir, name)
    writeFileSync(join(dir, `.${name}`), text)
    renameSync(join(dir, `.${name}`), path)
    return path
  }
  for (const [name, text] of Object.entries(rules)) write(name, text)
  const logged: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => logged.push(line) })
  const others = new Set(listYaraPids())
  const engine = await openYaraEngine({ rulesDirs: [dir], shipped: [], log, processes: 1, pollMs: 500, ...options })
  t.after(async () => {
    await engine.close()
    rmSync(dir, { recursive: true, force: true })
  })
  return {
    engine,
    dir,
    logged,
    write,
    remove: (name: string) => rmSync(join(dir, name)),
    pids: () => listYaraPids().filter((pid) => !others.has(pid)),
  }
}

export function toContent(bytes: Buffer, { chunkBytes }: { chunkBytes?: number } = {}): Content {
  return {
    bytes: bytes.length,
    head: bytes.subarray(0, 64),
    sha1: '',
    sha256: '',
    isInMemory: chunkBytes === undefined,
    whole: chunkBytes === undefined ? bytes : undefined,
    async *read() {
      const step = chunkBytes ?? 65_536
      for (let start = 0; start < bytes.length; start += step) yield bytes.subarray(start, start + step)
    },
    async release() {},
  }
}

/** The reason to skip the tests of a backend on this machine, or false. */
export async function whyNot(backend: BackendName): Promise<string | false> {
  const dir = mkdtempSync(join(tmpdir(), 'assay-yara-'))
  try {
    writeFileSync(join(dir, 'marker.yar'), markerRule)
    await checkYaraFile(join(dir, 'marker.yar'), { backend })
    return false
  } catch (error) {
    const { cause } = error as Error
    if (backend === 'libyara' && cause instanceof Error && cause.message.includes('not installed'))
      return 'libyara is not installed: apt-get install libyara9 (or libyara10)'
    throw error
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** The YARA processes that this process has started. */
export const listYaraPids = () => findChildren(process.pid, 'engines/yara/child/main.ts')
