import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Packages that others install; the rest of the repository is private. */
export const publishedPackages = ['client', 'cli']

export const toTarballName = (name: string, version: string) => `assay-${name}-${version}.tgz`

/** Compiles and packs the published packages; npm packs the same files into the same bytes. */
export function packPackages(repository: string, into: string, work: string) {
  for (const name of publishedPackages) {
    const compiled = join(work, name)
    execFileSync(process.execPath, [join(repository, 'scripts/build-package.ts'), compiled], {
      cwd: join(repository, 'packages', name),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    execFileSync('npm', ['pack', '--silent', '--pack-destination', into, compiled], {
      cwd: work,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
}

/** Installs both tarballs into empty folders, without a registry, and returns their folders. */
export function installPackages(dist: string, version: string, work: string): { client: string; cli: string } {
  const install = (name: string) => {
    const dir = join(work, `installed-${name}`)
    mkdirSync(dir)
    writeFileSync(join(dir, 'package.json'), '{"private":true,"type":"module"}')
    const options = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']
    execFileSync('npm', ['install', ...options, join(dist, toTarballName(name, version))], { cwd: dir })
    return dir
  }
  return { client: install('client'), cli: install('cli') }
}

const program = `
import { newClient } from '@assay/client'
const [baseUrl, apiKey, content] = process.argv.slice(2)
const { status } = await newClient({ baseUrl, apiKey }).malware.scanFile(new Blob([content]), { fileName: 'eicar.com' })
console.log(status)
`

/** Scans content with both packages and returns the verdicts that they print. */
export function scanWithPackages(
  installed: { client: string; cli: string },
  service: { url: string; key: string },
  content: string,
): { client: string; cli: string } {
  writeFileSync(join(installed.client, 'scan.js'), program)
  const client = execFileSync(process.execPath, ['scan.js', service.url, service.key, content], {
    cwd: installed.client,
    encoding: 'utf8',
  })
  const file = join(installed.cli, 'content.bin')
  writeFileSync(file, content)
  const env = { ...process.env, ASSAY_URL: service.url, ASSAY_API_KEY: service.key }
  let cli = ''
  try {
    cli = execFileSync(join(installed.cli, 'node_modules/.bin/assay-scan'), ['--no-summary', file], {
      env,
      encoding: 'utf8',
    })
  } catch (error) {
    // assay-scan ends with 1 when it finds a threat.
    cli = String((error as { stdout?: string }).stdout ?? '')
  }
  return { client: client.trim(), cli: cli.trim() }
}
