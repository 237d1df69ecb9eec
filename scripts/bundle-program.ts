import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
// A package that vite, which builds the console, depends on; `overrides` in package.json pins its version.
import { type OutputOptions, rolldown } from 'rolldown'

const server = fileURLToPath(new URL('../packages/server/', import.meta.url))
/** In the package of the server, where the bundles find the packages that are not part of them. */
const outDir = join(server, 'dist')
const loaderFile = fileURLToPath(new URL('bundle-loader.ts', import.meta.url))
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

/** Program of the HTTP processes of a service, which shares most modules with the service. */
const httpProcess = 'src/compose/http-process/main.ts'

const names = { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' }

/**
 * Joins the modules of the operator's program and of its packages into a few files, and returns their directory. Node
 * loads the program from its sources in more than twice the time, and tests start it hundreds of times. Every module
 * keeps the URL of its source: threads, data files and child processes, except for HTTP processes, are those of the
 * repository.
 */
export async function bundleProgram(): Promise<string> {
  await Promise.all([bundleCommands(), bundleService()])
  return outDir
}

/** A command needs few modules, so that each group of modules that some commands share is a file. */
async function bundleCommands() {
  // Tests check responses with the library of schemas, which has 250 modules.
  const input = { main: 'src/main.ts', 'schema-check': 'typebox/schema' }
  writeBundle(join(outDir, 'commands'), await generate({ input, transform: nameSource, output: names }))
}

/**
 * The service needs most modules, and loads one large file fastest. Its files are scripts, for which
 * scripts/bundle-loader.ts has a code cache; each entry is a module that loads its script.
 */
async function bundleService() {
  const output: OutputOptions = {
    format: 'cjs',
    // Node warns of `import()` in a script.
    dynamicImportInCjs: false,
    // V8 compares a code cache with the length of the script alone, so that the name has the hash of the content.
    entryFileNames: '[name]-[hash].cjs',
    chunkFileNames: '[name]-[hash].cjs',
    codeSplitting: { groups: [{ name: 'common', minShareCount: 2 }] },
  }
  const [scripts, loader] = await Promise.all([
    generate({ input: { main: 'src/main.ts', 'http-process': httpProcess }, transform: toScript, output }),
    generate({ input: { loader: loaderFile }, transform: (code) => code, output: names }),
  ])
  const entries = scripts
    .filter(({ isEntry }) => isEntry)
    .map(({ name }) => ({
      name: name.replace(/-.{8}\.cjs$/, '.js'),
      content: `import { load } from './loader.js'\nawait load('${name}').ended\n`,
      isEntry: true,
    }))
  const files = [...scripts, ...loader].map((file) => ({ ...file, isEntry: false }))
  writeBundle(join(outDir, 'serve'), [...files, ...entries])
}

type Build = {
  input: Record<string, string>
  transform: (code: string, path: string) => string
  output: OutputOptions
}

async function generate({ input, transform, output }: Build): Promise<BundleFile[]> {
  const program = await rolldown({
    cwd: server,
    input,
    platform: 'node',
    external: unbundled.map((name) => new RegExp(`^${name}(/|$)`)),
    plugins: [{ name: 'source-urls', transform: { filter: { id: /\/src\/.*\.ts$/ }, handler: transform } }],
    checks: { ineffectiveDynamicImport: false },
  })
  const { output: files } = await program.generate(output)
  await program.close()
  return files.map((file) =>
    file.type === 'chunk'
      ? { name: file.fileName, content: toAscii(file.code), isEntry: file.isEntry }
      : { name: file.fileName, content: file.source, isEntry: false },
  )
}

/**
 * Escapes the characters that are not ASCII, as in the texts of signatures. With one character beyond Latin-1 V8 would
 * hold all of a script in two bytes a character, and the loader reads scripts as Latin-1.
 */
const toAscii = (code: string): string =>
  code.replaceAll(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

const nameSource = (code: string, path: string) =>
  lowerPasswordCost(code, path)
    .replace("new URL('main.ts', import.meta.url)", (source) =>
      path.startsWith(join(server, dirname(httpProcess))) ? toUrl(join(outDir, 'serve', 'http-process.js')) : source,
    )
    .replaceAll('import.meta.url', toUrl(path))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))

/** At the cost of the sources, whose own tests are in passwords.test.ts, passwords take most of the time of a sign-in. */
function lowerPasswordCost(code: string, path: string): string {
  if (!path.endsWith('domain/console/authentication.ts')) return code
  const lowered = code.replace('memory: 19_456, passes: 2 }', 'memory: 64, passes: 1 }')
  if (lowered === code) throw new Error('The cost of passwords is not where bundle-program.ts looks for it.')
  return lowered
}

/** A script has neither `import.meta` nor `await` outside of functions: the entry waits for `ended`. */
function toScript(code: string, path: string): string {
  const named = nameSource(code, path).replaceAll('import.meta.resolve(', '__resolveUrl(')
  if (![httpProcess, 'src/main.ts'].includes(relative(server, path))) return named
  const [imports = '', body = ''] = named.split(/\n(?!import )(.*)/s)
  return `${imports}\nexport const ended = (async () => {\n${body}\n})()\n`
}

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
