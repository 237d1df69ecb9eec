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
/** Variables with a secret that npm or gh read; GITHUB_TOKEN is another name of GH_TOKEN. */
const secretNames = ['NODE_AUTH_TOKEN', 'GH_TOKEN', 'GITHUB_TOKEN']
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

/** Takes the secrets out of an environment and returns them, so that no program of the build can read them. */
export function takeSecrets(env: Record<string, string | undefined>): Record<string, string> {
  const taken: Record<string, string> = {}
  for (const name of secretNames) {
    if (env[name] !== undefined) taken[name] = env[name]
    delete env[name]
  }
  return taken
}

type Step = {
  command: string[]
  /** Succeeds and prints something when an earlier run has done the step, which is then skipped. */
  done: string[]
}

/**
 * The steps that publish the files of dist/. What can be replaced comes first: the image, and a draft of the release.
 * npm never takes a version back, so that its packages come after them, and the release becomes visible last.
 */
export function listPublishSteps(dist: string, version: string, image: string): Step[] {
  const tag = `v${version}`
  const files = readdirSync(dist)
    .sort()
    .map((name) => join(dist, name))
  const archive = `oci-archive:${join(dist, toImageFile(version))}:${version}`
  const target = `docker://${image}:${version}`
  const notes = [`--title=Assay ${version}`, `--notes-file=${join(dist, 'release-notes.md')}`]
  const isPublic = ['gh', 'release', 'view', tag, '--json=isDraft', '--jq=select(.isDraft | not)']
  return [
    { command: ['skopeo', 'copy', '--all', archive, target], done: ['skopeo', 'inspect', '--raw', target] },
    {
      command: ['gh', 'release', 'create', tag, '--draft', '--verify-tag', ...notes],
      done: ['gh', 'release', 'view', tag],
    },
    { command: ['gh', 'release', 'upload', tag, '--clobber', ...files], done: isPublic },
    ...publishedPackages.map((name) => ({
      command: ['npm', 'publish', '--access=public', join(dist, toTarballName(name, version))],
      done: ['npm', 'view', `@assay/${name}@${version}`, 'version'],
    })),
    { command: ['gh', 'release', 'edit', tag, '--draft=false'], done: isPublic },
  ]
}

/** Runs the steps that are not done yet, with the secrets. */
export function publish(steps: Step[], secrets: Record<string, string>) {
  const env = { ...process.env, ...secrets }
  for (const { command, done } of steps) {
    if (isDone(done, env)) continue
    const [program = '', ...args] = command
    execFileSync(program, args, { stdio: 'inherit', env })
  }
}

function isDone([program = '', ...args]: string[], env: NodeJS.ProcessEnv): boolean {
  const { status, stdout } = spawnSync(program, args, { env, encoding: 'utf8' })
  return status === 0 && stdout.trim() !== ''
}
