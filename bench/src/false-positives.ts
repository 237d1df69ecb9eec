import { readdirSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startService } from '../../acceptance/support/start-service.ts'
import type { Row } from './results.ts'

const roots = ['/usr/lib', '/usr/share', '/usr/bin', '/etc']
/** Directories with test files of scanners, which are meant to be found. */
const leftOut = /clamav-testfiles/
const maxFiles = 4000
const maxBytes = 100 * 1024 * 1024
const callers = 4

/** Uploads files of this system, none of which is a threat, through the whole service. */
export async function benchFalsePositives(): Promise<Row[]> {
  const files = pick(roots.flatMap(listFiles), maxFiles)
  const service = await startService({}, 'dropped')
  const verdicts = new Map<string, string[]>()
  try {
    const queue = [...files]
    const work = async () => {
      for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
        const verdict = await scan(service, path)
        verdicts.set(verdict, [...(verdicts.get(verdict) ?? []), path])
      }
    }
    await Promise.all(Array.from({ length: callers }, work))
  } finally {
    await service.stop()
  }
  for (const [verdict, paths] of verdicts) {
    if (verdict !== 'clean') process.stderr.write(`${verdict}: ${paths.join(' ')}\n`)
  }
  const threats = [...verdicts].filter(([verdict]) => verdict.startsWith('threat')).flatMap(([, paths]) => paths)
  const clean = verdicts.get('clean')?.length ?? 0
  return [
    {
      what: 'Files of the system through POST /v1/malware/scan/file that are called a threat',
      ours: `${threats.length} of ${files.length}`,
      against: `${clean} clean, ${files.length - clean - threats.length} with an error such as encrypted content`,
      ratio: undefined,
      wanted: '0',
    },
  ]
}

async function scan(service: { url: string; apiKey: string }, path: string): Promise<string> {
  const body = new FormData()
  body.set('file', new Blob([new Uint8Array(await readFile(path))]), 'system-file')
  const headers = { 'X-API-Key': service.apiKey }
  const answer = await fetch(`${service.url}/v1/malware/scan/file`, { method: 'POST', headers, body })
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  const { status, signals } = (await answer.json()) as { status: string; signals: string[] }
  return [status, ...signals].join(' ')
}

function listFiles(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) return leftOut.test(path) ? [] : listFiles(path)
    return entry.isFile() && isWithin(path) ? [path] : []
  })
}

function isWithin(path: string): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return size > 0 && size <= maxBytes
}

/** Picks files at even distances, the same in every run. */
const pick = (files: string[], count: number) => {
  const step = Math.max(1, files.length / count)
  const sorted = files.sort()
  return Array.from({ length: Math.min(count, files.length) }, (_, i) => sorted[Math.floor(i * step)] as string)
}
