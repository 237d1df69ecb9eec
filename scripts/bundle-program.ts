import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
// A package that vite, which builds the console, depends on; `overrides` in package.json pins its version.
import { type OutputOptions, rolldown } from 'rolldown'

const server = fileURLToPath(new URL('../packages/server/', import.meta.url))
/** In the package of the server, where the bundles find the packages that are not part of them. */
const outDir = join(server, 'dist')
/** Packages that load native code or files of their own, and one that only services with S3 load. */
const unbundled = [
  '7z-wasm',
  '@aws-sdk/client-s3',
  '@scalar/fastify-api-reference',
  '@virustotal/yara-x',
  'koffi',
  'onnxruntime-node',
  'pg-native',
  'sharp',
]

/**
 * The service needs most modules, and loads one large file fastest. A command needs few, so that each group of modules
 * that some commands share is a file.
 */
const bundles: Record<string, OutputOptions> = {
  serve: { codeSplitting: { groups: [{ name: 'common', minShareCount: 2 }] } },
  commands: {},
}

/** Program of the HTTP processes of a service, which shares most modules with the service. */
const httpProcess = 'src/compose/http-process/main.ts'

/**
 * Joins the modules of the operator's program and of its packages into a few files, and returns their directory. Node
 * loads the program from its sources in more than twice the time, and tests start it hundreds of times. Every module
 * keeps the URL of its source: threads, data files and child processes, except for HTTP processes, are those of the
 * repository.
 */
export async function bundleProgram(): Promise<string> {
  const program = await rolldown({
    cwd: server,
    // Tests check responses with the library of schemas, which has 250 modules.
    input: { main: 'src/main.ts', 'http-process': httpProcess, 'schema-check': 'typebox/schema' },
    platform: 'node',
    external: unbundled.map((name) => new RegExp(`^${name}(/|$)`)),
    plugins: [{ name: 'source-urls', transform: { filter: { id: /\/src\/.*\.ts$/ }, handler: nameSource } }],
    checks: { ineffectiveDynamicImport: false },
  })
  const names = { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' }
  for (const [name, options] of Object.entries(bundles)) {
    const { output } = await program.generate({ ...names, ...options })
    const toFile = (file: (typeof output)[number]): BundleFile =>
      file.type === 'chunk'
        ? { name: file.fileName, content: file.code, isEntry: file.isEntry }
        : { name: file.fileName, content: file.source, isEntry: false }
    writeBundle(join(outDir, name), output.map(toFile))
  }
  await program.close()
  return outDir
}

const nameSource = (code: string, path: string) =>
  code
    .replace("new URL('main.ts', import.meta.url)", (source) =>
      path.startsWith(join(server, dirname(httpProcess))) ? toUrl(join(outDir, 'serve', 'http-process.js')) : source,
    )
    .replaceAll('import.meta.url', toUrl(path))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))

const toUrl = (path: string) => JSON.stringify(pathToFileURL(path).href)

type BundleFile = { name: string; content: string | Uint8Array; isEntry: boolean }

/** Writes the entries last, so that the files that an entry imports are there, also when the build is cut off. */
export function writeBundle(dir: string, files: BundleFile[]) {
  mkdirSync(dir, { recursive: true })
  removeOldFiles(dir)
  const sorted = files.toSorted((a, b) => Number(a.isEntry) - Number(b.isEntry))
  for (const { name, content } of sorted) write(join(dir, name), content)
}

/** Replaces a file in one step: another test run in this repository may be loading it. */
function write(path: string, content: string | Uint8Array) {
  const part = `${path}.${process.pid}`
  writeFileSync(part, content)
  renameSync(part, path)
}

const keptMs = 24 * 3_600_000

/** Removes files that earlier builds left behind, but none that a test run may still need. */
function removeOldFiles(dir: string) {
  for (const path of readdirSync(dir).map((name) => join(dir, name))) {
    // Another test run may remove or rename the file meanwhile.
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {}
    if (mtimeMs !== undefined && Date.now() - mtimeMs > keptMs) rmSync(path, { force: true })
  }
}
