import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Expectation, Form } from './form.ts'
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
