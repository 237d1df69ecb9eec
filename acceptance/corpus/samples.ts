import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { plainText } from './bytes.ts'
import type { Expectation, Form, Sample } from './form.ts'
import { breakLines } from './mail-writer.ts'
import { run } from './tools.ts'

/** Makes one sample. `workdir` is a directory of its own that holds the payload as `payload.com`. */
export type Build = (payload: Buffer, workdir: string) => Buffer

type Shared = Omit<Form, 'name' | 'expectation' | 'make'>

/** Returns a function that makes forms of one family out of a list of samples, each with the function that builds it. */
export const formsOf =
  (shared: Shared) =>
  (name: string, expectation: Expectation, builds: Record<string, Build>, more: Partial<Shared> = {}): Form => ({
    ...shared,
    ...more,
    name,
    expectation,
    make: (payload, payloadName, workdir, count) =>
      Object.entries(builds)
        .slice(0, count)
        .map(([sampleName, build]) => {
          const directory = join(workdir, sampleName)
          mkdirSync(directory)
          writeFileSync(join(directory, payloadName), payload)
          return { name: sampleName, bytes: build(payload, directory) }
        }),
  })

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
  return commands.map(([name, args]) => ({ name, bytes: runAndRead(workdir, name, program, ...args) }))
}

/** Runs a program in the directory of a sample and returns the file that it wrote. */
export function runAndRead(workdir: string, output: string, program: string, ...args: string[]): Buffer {
  run(program, args, { cwd: workdir })
  return readFileSync(join(workdir, output))
}

/** Puts a file into a zip by Info-ZIP. */
export function zipFile(workdir: string, name: string, bytes: Buffer): Buffer {
  writeFileSync(join(workdir, name), bytes)
  return runAndRead(workdir, 'outer.zip', 'zip', '-qX', 'outer.zip', name)
}

/** Base64 in lines, as mail has it. */
export const base64 = (bytes: Buffer) => breakLines(bytes.toString('base64'), 76)

/** Writes a script whose lines hold the payload. */
export const script =
  (...lines: ((payload: Buffer) => string)[]): Build =>
  (payload) =>
    Buffer.from(`${lines.map((line) => line(payload)).join('\n')}\n`)

/** A line without the payload. */
export const text = (line: string) => () => line
