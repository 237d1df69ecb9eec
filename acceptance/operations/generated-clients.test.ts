import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { eicar } from '../support/archives.ts'
import { sendTo } from '../support/http.ts'
import { lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const toPath = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const programs = ['../node_modules/.bin/', '../../node_modules/.bin/'].map(toPath)
const PATH = [...programs, process.env.PATH].join(delimiter)
/** The generators load megabytes of code, which later runs need not compile again. */
const compileCache = toPath('../../node_modules/.cache/generators')

/** Generators, the name of the folder of each, and the program of a caller that uses what it generates. */
const generators = {
  'openapi-typescript': {
    args: ['openapi.json', '-o', 'openapi-typescript/schema.d.ts'],
    caller: `
import type { paths } from './schema.js'
type Upload = paths['/v1/malware/scan/file']['post']
type Form = Upload['requestBody']['content']['multipart/form-data']
type Scanned = Upload['responses'][201]['content']['application/json']
type Read = paths['/v1/malware/{id}']['get']['responses'][200]['content']['application/json']

export async function scanAndRead(url: string, key: string, file: Blob) {
  const form = new FormData()
  form.append('file' satisfies keyof Form, file)
  form.append('file_name' satisfies keyof Form, 'eicar.com' satisfies NonNullable<Form['file_name']>)
  const headers = { 'X-API-Key': key }
  const sent = await fetch(url + ('/v1/malware/scan/file' satisfies keyof paths), { method: 'POST', headers, body: form })
  const { id }: Scanned = await sent.json()
  const read: Read = await (await fetch(url + '/v1/malware/' + id, { headers })).json()
  return { status: read.status, name: read.content_name }
}`,
  },
  'openapi-ts': {
    args: ['-i', 'openapi.json', '-o', 'openapi-ts/client', '--no-log-file'],
    caller: `
import { createClient } from './client/client/index.js'
import { malwareGetResult, malwareScanFile } from './client/index.js'

export async function scanAndRead(url: string, key: string, file: Blob) {
  const client = createClient({ baseUrl: url, auth: key, throwOnError: true })
  const scanned = await malwareScanFile<true>({ client, body: { file, file_name: 'eicar.com' } })
  const read = await malwareGetResult<true>({ client, path: { id: scanned.data.id } })
  return { status: read.data.status, name: read.data.content_name }
}`,
  },
  orval: {
    args: ['--config', 'orval.config.mjs'],
    caller: `
import { malwareGetResult, malwareScanFile } from './client.js'

export async function scanAndRead(_url: string, key: string, file: Blob) {
  const headers = { 'X-API-Key': key }
  const scanned = await malwareScanFile({ file, file_name: 'eicar.com' }, { headers })
  if (scanned.status !== 201) throw new Error(String(scanned.status))
  const read = await malwareGetResult(scanned.data.id, {}, { headers })
  if (read.status !== 200) throw new Error(String(read.status))
  return { status: read.data.status, name: read.data.content_name }
}`,
  },
}
const names = Object.keys(generators) as (keyof typeof generators)[]

/** The server comes from the document, as orval needs it written into its code. */
const orvalConfig = `export default { assay: { input: 'openapi.json', output: { target: 'orval/client.ts',
  client: 'fetch', baseUrl: { getBaseUrlFromSpecification: true } } } }`

/** Strict, and with the checks of declarations, so that no generated file is left out. */
const compiler = {
  compilerOptions: {
    strict: true,
    skipLibCheck: false,
    target: 'es2023',
    module: 'nodenext',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: [],
    rootDir: '.',
    outDir: 'out',
  },
  include: names,
}

type Caller = { scanAndRead(url: string, key: string, file: Blob): Promise<{ status: string; name: string }> }

describe('code that is generated from /openapi.json', { skip: await lacksClamAv(service.url) }, () => {
  let dir = ''
  const run = (command: string, args: string[]) =>
    promisify(execFile)(command, args, { cwd: dir, env: { ...process.env, PATH, NODE_COMPILE_CACHE: compileCache } })
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'assay-generated-'))
    const { text } = await sendTo(service.url, { method: 'GET', path: '/openapi.json' })
    const write = (name: string, content: string) => writeFileSync(join(dir, name), content)
    write('openapi.json', text)
    write('package.json', '{ "type": "module" }')
    write('tsconfig.json', JSON.stringify(compiler))
    write('orval.config.mjs', orvalConfig)
    for (const name of names) {
      mkdirSync(join(dir, name))
      write(`${name}/caller.ts`, generators[name].caller)
    }
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  test('is generated by openapi-typescript, @hey-api/openapi-ts and orval, and compiles strictly', async () => {
    await run('openapi-typescript', generators['openapi-typescript'].args)
    await run('openapi-ts', generators['openapi-ts'].args)
    await run('orval', generators.orval.args)
    // The compiler of this repository, which is faster than the one that the generators need.
    await run(toPath('../../node_modules/.bin/tsc'), ['-p', '.']).catch(({ stdout }) => assert.fail(stdout))
  })

  for (const name of names) {
    test(`uploads a file and reads its result: ${name}`, async () => {
      const { scanAndRead }: Caller = await import(pathToFileURL(join(dir, 'out', name, 'caller.js')).href)
      const { api_key } = await service.createAccount()
      const found = await scanAndRead(service.url, api_key, new Blob([eicar]))
      assert.deepEqual(found, { status: 'threat', name: 'eicar.com' })
    })
  }
})
