import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { toImageFile } from './image.ts'
import { publishedPackages, toTarballName } from './npm-packages.ts'

/** State of the repository and the environment that decides whether a release may be published. */
export type Circumstances = {
  version: string
  /** Date of the version in CHANGELOG.md. */
  date: string
  isClean: boolean
  /** Tags of the commit. */
  tags: string[]
  env: Record<string, string | undefined>
  missingPrograms: string[]
}

/** Where each credential comes from, and what is published with it. */
const credentials = {
  NODE_AUTH_TOKEN: 'a token of the npm registry, for the packages @assay/client and @assay/cli',
  GH_TOKEN: 'a token of GitHub, for the release with the archives, the chart, the image and the checksums',
  RELEASE_IMAGE: 'the name of the image with its registry, such as ghcr.io/owner/assay, where skopeo is logged in',
}
export const publishingPrograms = ['gh', 'skopeo']

/** Reasons not to publish; none when everything is there. */
export function findObstacles({ version, date, isClean, tags, env, missingPrograms }: Circumstances): string[] {
  const tag = `v${version}`
  return [
    ...(isClean ? [] : ['The working tree has changes. Commit or remove them.']),
    ...(tags.includes(tag) ? [] : [`The commit does not have the tag ${tag}. Run: git tag ${tag}`]),
    ...(/^\d{4}-\d\d-\d\d$/.test(date) ? [] : [`CHANGELOG.md gives ${version} no date, but "${date}".`]),
    ...Object.entries(credentials)
      .filter(([name]) => (env[name] ?? '') === '')
      .map(([name, purpose]) => `${name} is not set: ${purpose}.`),
    ...missingPrograms.map((name) => `The program ${name} is not installed.`),
  ]
}

export const isInstalled = (program: string) => spawnSync('which', [program]).status === 0

/** The commands that publish the files of dist/, in their order: the release that names the others comes last. */
export function listPublishCommands(dist: string, version: string, image: string): string[][] {
  const files = readdirSync(dist).sort()
  const archive = `oci-archive:${join(dist, toImageFile(version))}:${version}`
  return [
    ...publishedPackages.map((name) => ['npm', 'publish', '--access=public', join(dist, toTarballName(name, version))]),
    ['skopeo', 'copy', '--all', archive, `docker://${image}:${version}`],
    [
      'gh',
      'release',
      'create',
      `v${version}`,
      '--verify-tag',
      `--title=Assay ${version}`,
      `--notes-file=${join(dist, 'release-notes.md')}`,
      ...files.map((name) => join(dist, name)),
    ],
  ]
}

export function publish(commands: string[][]) {
  for (const [program = '', ...args] of commands) execFileSync(program, args, { stdio: 'inherit' })
}
