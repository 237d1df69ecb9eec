import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { maxUnpackedBytes } from '../../src/domain/ports/engines.ts'

/** The shipped signatures, which clamd loads. */
export const signaturesDir = fileURLToPath(new URL('../../signatures/', import.meta.url))

const program = 'clamscan'

/** Skips a test without clamscan, which Debian's package clamav contains. The test run installs it where it may. */
export const needsClamscan =
  spawnSync(program, ['--version']).status === 0 ? {} : { skip: 'clamscan is not installed (package clamav)' }

/** The marker that makes readers look for containers further in: it says nothing about the content. */
const searchMarker = /^Heuristics\.Assay\.Search\./

type Files = Record<string, Uint8Array | string>

/** The findings of clamscan with the shipped signatures alone, by name; null for OK. One run loads the database once. */
export const scanFiles = (files: Files): Record<string, string | null> =>
  withFiles(files, (dir) => {
    const answers = runClamscan(['--recursive', dir])
    return Object.fromEntries(Object.keys(files).map((name) => [name, toFinding(answers, join(dir, name))]))
  })

/** The names of all signatures that match, by file, markers of searches included. */
export const listMatches = (files: Files): Record<string, string[]> =>
  withFiles(files, (dir) => {
    const { stdout } = callClamscan(['--no-summary', '--allmatch', '--recursive', dir])
    const matches = [...stdout.matchAll(/^(.+): (.+?)(?:\.UNOFFICIAL)? FOUND$/gm)]
    const listOf = (path: string) => new Set(matches.flatMap(([, at, match = '']) => (at === path ? [match] : [])))
    return Object.fromEntries(Object.keys(files).map((name) => [name, [...listOf(join(dir, name))].sort()]))
  })

function withFiles<T>(files: Files, use: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), 'assay-signatures-'))
  try {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, name)), { recursive: true })
      writeFileSync(join(dir, name), content)
    }
    return use(dir)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The output of clamscan by path; OK where the only marker is that of a search. */
export function runClamscan(args: string[]): Map<string, string> {
  const { stdout } = callClamscan(['--no-summary', ...args])
  return new Map(
    [...stdout.matchAll(/^(.+): (.+)$/gm)].map(([, path = '', answer = '']) => [
      path,
      searchMarker.test(answer) ? 'OK' : answer,
    ]),
  )
}

/** Throws when clamscan fails: a database that does not load must not look like a clean file. */
export function callClamscan(args: string[]): { stdout: string; stderr: string } {
  const limits = ['--alert-encrypted=yes', `--max-filesize=${maxUnpackedBytes}`, `--max-scansize=${maxUnpackedBytes}`]
  const all = ['--database', signaturesDir, ...limits, ...args]
  const run = spawnSync(program, all, { encoding: 'utf8', maxBuffer: 64 * 2 ** 20 })
  if (run.error) throw new Error(`These tests need ClamAV on the PATH (Debian package clamav): ${run.error.message}`)
  if (run.status !== 0 && run.status !== 1) throw new Error(`${program} ended with ${run.status}: ${run.stderr}`)
  return run
}

function toFinding(answers: Map<string, string>, path: string): string | null {
  const answer = answers.get(path)
  if (answer === 'OK' || answer === 'Empty file') return null
  const name = /^(.+?)(?:\.UNOFFICIAL)? FOUND$/.exec(answer ?? '')?.[1]
  if (name === undefined) throw new Error(`clamscan said nothing usable about ${path}: ${answer}`)
  return name
}
