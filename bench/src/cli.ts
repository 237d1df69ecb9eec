import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openChildren, type Service, sum, watchCores, whenIdle } from './children.ts'
import { newContent } from './malware-content.ts'
import type { UploadJob, UploadResult } from './malware-load.ts'
import { listTree, readCpuSeconds, readEndedSeconds } from './processes.ts'
import type { Row } from './results.ts'

const [files, bytes, parallel, passes] = [2000, 1024, 16, 4]
const packages = fileURLToPath(new URL('../../packages/', import.meta.url))

/** `assay-scan` on a tree of small files, from start to end, against bare uploads at the same parallelism. */
export async function benchCli(): Promise<Row[]> {
  const { dir, startService, startWorker, close } = openChildren()
  try {
    const service = await startService('/v1/malware/scan/file')
    const load = startWorker<UploadJob, UploadResult>(new URL('./malware-load.ts', import.meta.url))
    const program = buildCli(dir)
    const cpu = () => ({
      service: sum(listTree(service.pid).map(readCpuSeconds)),
      load: readCpuSeconds(load.pid),
      'assay-scan': readEndedSeconds(),
    })
    const target = { kind: 'http' as const, url: service.url, headers: service.headers, expected: '"status":"clean"' }
    const job = { target, bytes, connections: parallel, seconds: 2, least: 1, unique: true }
    const turns = {
      bare: async () => (await load.run(job)).perSecond,
      cli: () => scanTree(program, tree, service),
    }
    const tree = join(dir, 'tree')
    const rates = { bare: 0, cli: 0 }
    await load.run({ ...job, seconds: 5 })
    writeTree(tree, 'warm')
    await turns.cli()
    for (let pass = 0; pass < passes; pass++) {
      for (const name of pass % 2 === 0 ? (['bare', 'cli'] as const) : (['cli', 'bare'] as const)) {
        writeTree(tree, `pass${pass}`)
        await whenIdle(cpu)
        const { result, used } = await watchCores(cpu, turns[name])
        process.stderr.write(`  ${name}: ${result.toFixed(0)}/s ${used}\n`)
        rates[name] += result / passes
      }
    }
    return [
      {
        what: `assay-scan, a tree of ${files} files of 1 KB, ${parallel} at a time, from start to end`,
        ours: `${rates.cli.toFixed(0)}/s`,
        against: `bare uploads, ${parallel} connections: ${rates.bare.toFixed(0)}/s`,
        ratio: rates.cli / rates.bare,
        wanted: 'at least 0.6',
      },
    ]
  } finally {
    await close()
  }
}

/** Builds the command line and the client as they are published. */
function buildCli(dir: string): string {
  for (const name of ['client', 'cli']) {
    const to = join(dir, 'node_modules/@assay', name)
    mkdirSync(to, { recursive: true })
    execFileSync(process.execPath, ['../../scripts/build-package.ts', to], { cwd: packages + name, stdio: 'pipe' })
  }
  return join(dir, 'node_modules/@assay/cli/main.js')
}

/** Writes files into 20 directories; no two are the same, in this run or an earlier one. */
function writeTree(tree: string, stamp: string) {
  rmSync(tree, { recursive: true, force: true })
  for (let i = 0; i < files; i++) {
    const content = newContent(bytes, i)
    content.stamp(`${stamp}${String(i).padStart(8, '0')}`)
    const directory = join(tree, String(i % 20))
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, `report-${i}.txt`), Buffer.concat(content.pieces))
  }
}

async function scanTree(program: string, tree: string, { url, headers }: Service): Promise<number> {
  const [, apiKey = ''] = headers[0]?.split(': ') ?? []
  const env = { ...process.env, ASSAY_URL: new URL(url).origin, ASSAY_API_KEY: apiKey }
  const start = performance.now()
  const child = spawn(process.execPath, [program, '--parallel', String(parallel), tree], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  const [code] = await once(child, 'close')
  const seconds = (performance.now() - start) / 1000
  const clean = out.match(/: OK$/gm)?.length ?? 0
  if (code !== 0 || clean !== files)
    throw new Error(`assay-scan ended with ${code} and ${clean} clean files:\n${out.slice(-500)}`)
  return files / seconds
}
