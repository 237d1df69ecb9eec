import { readFileSync } from 'node:fs'

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: { assay: string; start: string }
}
/** Parts of commands that documents show, and what npm runs for them. */
const commands: [shown: RegExp, run: string][] = [
  // Without `exec`, which would replace the shell of the test.
  [/\bnpm run --silent assay -- /g, `${scripts.assay.replace(/^exec /, '')} `],
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
