import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Encoding, ModelName } from './manifest.ts'

const run = promisify(execFile)
const entry = fileURLToPath(new URL('child/main.ts', import.meta.url))
/** A hundred times what it takes. */
const convertMs = 300_000

/** Writes a new file. In a process of its own: it computes for seconds and leaves some hundred megabytes behind. */
export async function convertInChild(name: ModelName, encoding: Encoding, path: string): Promise<void> {
  await run(process.execPath, [entry, name, encoding, path], { env: {}, timeout: convertMs })
}
