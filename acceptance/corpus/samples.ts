import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { plainText } from './bytes.ts'
import type { Expectation, Sample } from './form.ts'
import { run } from './tools.ts'

/** Makes samples from contents by name; the extension is added to all names. */
export const toSamples = (extension: string, entries: Record<string, Buffer>, expectation?: Expectation): Sample[] =>
  Object.entries(entries).map(([name, bytes]) => ({
    name: `${name}.${extension}`,
    bytes,
    ...(expectation === undefined ? {} : { expectation }),
  }))

/** Writes the payload and `readme.txt`, which is harmless, into the working directory. */
export function writeFiles(payload: Buffer, payloadName: string, workdir: string) {
  writeFileSync(join(workdir, payloadName), payload)
  writeFileSync(join(workdir, 'readme.txt'), plainText)
}

/** Runs a program once for each sample, in a directory with the payload and `readme.txt`. The program writes `name`. */
export function packFiles(
  program: string,
  payload: Buffer,
  payloadName: string,
  workdir: string,
  commands: [name: string, args: string[]][],
): Sample[] {
  writeFiles(payload, payloadName, workdir)
  return commands.map(([name, args]) => {
    run(program, args, { cwd: workdir })
    return { name, bytes: readFileSync(join(workdir, name)) }
  })
}
