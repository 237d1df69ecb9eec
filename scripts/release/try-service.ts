import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const key = 'assay_key_for_the_check_of_packages'
export const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}', '$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join('')
const readyTimeoutMs = 180_000

/** Settings of a service that is tried: findings must not depend on the download of official databases. */
export const trialSettings = {
  ASSAY_BOOTSTRAP_KEY: key,
  ASSAY_SIGNATURE_HOURS: '0',
  ASSAY_SIGNATURE_MAX_AGE: 'off',
}

export async function waitUntil(condition: () => boolean | Promise<boolean>) {
  const deadline = performance.now() + readyTimeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`The condition was not met within ${readyTimeoutMs / 1000} s.`)
    await sleep(200)
  }
}

/** Waits until the service is ready and scans EICAR, a picture and 40 MB; returns its readiness. */
export async function expectScans(repository: string, url: string, state = 'ready') {
  await waitUntil(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true)
  const { status, reasons } = (await (await fetch(`${url}/readyz`)).json()) as { status: string; reasons: string[] }
  assert.equal(status, state, reasons.join(' '))
  const send = async (path: string, content: Uint8Array<ArrayBuffer>) => {
    const body = new FormData()
    body.set('file', new Blob([content]), 'file')
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers: { 'X-API-Key': key }, body })
    return (await answer.json()) as { status: string; metadata: Record<string, string> }
  }
  assert.equal((await send('/v1/malware/scan/file', new TextEncoder().encode(eicar))).status, 'threat')
  const picture = new Uint8Array(readFileSync(join(repository, 'acceptance/support/pictures/colours.jpg')))
  const scored = await send('/v1/nsfw/images/scan/file', picture)
  assert.match(scored.metadata.engine_versions ?? '', /^nsfwjs /)
  // Content over 1 MB goes through the encrypted spool and ClamAV's scratch.
  const large = await send('/v1/malware/scan/file', new Uint8Array(40_000_000).fill(7))
  assert.equal(large.status, 'clean')
}

/** Loads the console's page and the scripts and styles that it names; returns how many files it consists of. */
export async function expectConsole(read: (path: string) => string | Promise<string>): Promise<number> {
  const page = await read('/console/')
  const files = [...page.matchAll(/(?:src|href)="(\/console\/[^"]+\.(?:js|css))"/g)].map(([, path = '']) => path)
  assert(files.length >= 2, `The console names no scripts and styles: ${page.slice(0, 300)}`)
  for (const path of files) assert((await read(path)).length > 100, path)
  return files.length
}

export const fetchText = async (url: string): Promise<string> => {
  const answer = await fetch(url)
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`)
  return answer.text()
}

export type Running = { url: string; readOutput(): string; stop(): Promise<void> }

/** Starts a service that prints to a pipe, and collects what it prints. */
export function startService(
  command: string[],
  { cwd, env, port }: { cwd: string; env: Record<string, string>; port: number },
): Running {
  const [program = '', ...args] = command
  const child: ChildProcess = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return {
    url: `http://127.0.0.1:${port}`,
    readOutput: () => output,
    async stop() {
      child.kill('SIGTERM')
      await ended
      assert.match(output, /"msg":"stopped"/)
    },
  }
}
