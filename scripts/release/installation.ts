import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { normalizeSbom } from './sbom.ts'

/** Processors that an installation is built for, with the names that Debian and OCI give them. */
export const architectures = { x64: 'amd64', arm64: 'arm64' } as const
export type Cpu = keyof typeof architectures

/** Precisions of the models that ship; fp32 would add 107 MB. */
const shippedModels = /\.(?:int8|uint8)\.onnx$/

/** Builds the parts that are the same on every processor, in the repository, where `npm start` has them too. */
export function buildSharedParts(repository: string) {
  for (const script of ['build-console.ts', 'models.ts']) {
    execFileSync(process.execPath, [join(repository, 'scripts', script)], {
      cwd: repository,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
}

/**
 * Puts an installation together in a new directory: packages for the processor with Node and PostgreSQL, the tracked
 * sources, console, models and launcher. Nothing of the other processor is run. `modulesFrom` is an installation for
 * the same processor whose packages are taken instead of installed again.
 */
export function assembleInstallation(
  repository: string,
  { dir, cpu, epoch, modulesFrom }: { dir: string; cpu: Cpu; epoch: number; modulesFrom?: string },
) {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: repository, encoding: 'utf8' }).split('\0')
  const copy = (names: string[]) => {
    for (const name of names) {
      mkdirSync(dirname(join(dir, name)), { recursive: true })
      cpSync(join(repository, name), join(dir, name))
    }
  }
  copy(tracked.filter((name) => /(?:^|\/)package(?:-lock)?\.json$|^\.npmrc$/.test(name)))
  if (modulesFrom === undefined) {
    execFileSync(join(repository, 'packaging/install-modules.sh'), [cpu], {
      cwd: dir,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    normalizeSbom(join(dir, 'sbom.cdx.json'), epoch)
  } else {
    const names = ['node_modules', 'sbom.cdx.json'].map((name) => join(modulesFrom, name))
    execFileSync('cp', ['-r', '--no-dereference', ...names, dir])
  }
  const isSource = (name: string) => /^packages\/(?:contract|server)\/(?!test\/)/.test(name)
  const isDocument = (name: string) => /^docs\/[^/]+\.md$/.test(name)
  const others = ['LICENSE', 'NOTICE', 'CHANGELOG.md', 'README.md', 'SECURITY.md']
  const isPackaging = (name: string) => name === 'packaging/assay' || name.startsWith('packaging/systemd/')
  copy(tracked.filter((name) => isSource(name) || isDocument(name) || isPackaging(name) || others.includes(name)))
  cpSync(join(repository, 'packages/console/dist'), join(dir, 'packages/console/dist'), { recursive: true })
  copyModels(repository, dir)
  // The manifests of packages that are not installed served npm ci alone.
  for (const name of ['client', 'cli']) rmSync(join(dir, 'packages', name), { recursive: true })
  for (const name of ['acceptance', 'bench', 'package-lock.json', '.npmrc'])
    rmSync(join(dir, name), { recursive: true, force: true })
  symlinkSync('packaging/assay', join(dir, 'assay'))
}

function copyModels(repository: string, dir: string) {
  const [from, to] = [repository, dir].map((root) => join(root, 'packages/server/models/built')) as [string, string]
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from).filter((one) => shippedModels.test(one)))
    cpSync(join(from, name), join(to, name))
  cpSync(join(repository, 'node_modules/nsfwjs/LICENSE'), join(to, 'LICENSE'))
}

/** The newest version of glibc that a program or library in the installation asks for, such as `2.28`. */
export function findGlibc(dir: string): string {
  let newest = 0
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || !/\.node$|\.so(?:\.|$)|\/bin\/[^.]*$/.test(path)) continue
    const content = readFileSync(path)
    if (content.toString('latin1', 0, 4) !== '\x7fELF') continue
    // The names of versions are strings of the dynamic section.
    for (let at = content.indexOf('GLIBC_2.'); at !== -1; at = content.indexOf('GLIBC_2.', at + 8)) {
      const minor = Number.parseInt(content.toString('latin1', at + 8, at + 11), 10)
      if (minor < 100) newest = Math.max(newest, minor)
    }
  }
  return `2.${newest}`
}

/** Writes a file with one checksum for each artefact, as `sha256sum --check` reads it. */
export function writeChecksums(dist: string, hash: (path: string) => string) {
  const names = readdirSync(dist).filter((name) => name !== 'SHA256SUMS')
  const lines = names.sort().map((name) => `${hash(join(dist, name))}  ${name}\n`)
  writeFileSync(join(dist, 'SHA256SUMS'), lines.join(''))
}
