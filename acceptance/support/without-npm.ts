import { readFileSync } from 'node:fs'
import { programFile } from './run-program.ts'
import { runShared } from './shared-commands.ts'

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: { assay: string; start: string }
}
/** Without `exec`, which would replace the shell of the test. */
const assay = scripts.assay.replace(/^exec /, '')
/** Parts of commands that documents show, and what npm runs for them. */
const commands: [shown: RegExp, run: string][] = [
  [/\bnpm run --silent assay -- /g, `${assay} `],
  [/\bnpm start$/g, `sh -c '${scripts.start}'`],
  [/\bnpx node /g, 'node '],
]
const seen = new Set<RegExp>()

/**
 * Replaces npm in a command by what npm runs: npm takes as much processor time as the operator's program. In each test
 * process, the first command of a kind runs through npm.
 */
export function saveNpm(command: string): string {
  return commands.reduce((typed, [shown, run]) => {
    if (typed.search(shown) < 0) return typed
    const isFirst = !seen.has(shown)
    seen.add(shown)
    return isFirst ? typed : typed.replaceAll(shown, run)
  }, command)
}

const assignment = '[A-Z_]+=[\\w/.-]+'
const word = '[\\w@:/.,=+-]+|"[\\w ]+"'
/** A command that a shell would only split into settings and words. */
const plain = new RegExp(`^(?:(${assignment}) )?${assay} ((?:${word})(?: +(?:${word}))*)$`)
const known = new Set<string>()

/**
 * Runs a command of the operator's program in the process that commands of this test file share, if a command of the
 * same name has run as a program of its own before. Returns undefined where a shell has to run it.
 */
export function runRepeated(typed: string, { env, cwd }: { env: NodeJS.ProcessEnv; cwd: string }) {
  const [, setting, words = ''] = plain.exec(typed.replaceAll(/\\\n\s*/g, '')) ?? []
  const args = [...words.matchAll(new RegExp(word, 'g'))].map(([found]) => found.replaceAll('"', ''))
  const [name = ''] = args
  if (name === '') return undefined
  if (!known.has(name)) {
    known.add(name)
    return undefined
  }
  const [key, value] = setting?.split('=') ?? []
  const run = runShared(programFile, { args, env: key === undefined ? env : { ...env, [key]: value }, cwd })
  return run?.then(({ code, out, err }) => ({ said: err + out, code: String(code) }))
}
