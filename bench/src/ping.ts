import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startService } from '../../acceptance/support/start-service.ts'
import { measureGet } from './load.ts'
import type { Row } from './results.ts'

const connections = 64
const seconds = 6

/** `GET /v1/ping` through the whole edge with admission in PostgreSQL, against a bare route. */
export async function benchPing(): Promise<Row[]> {
  const service = await startService({})
  const bare = await startBare()
  try {
    const ratios: { ours: number; bare: number }[] = []
    for (let round = 0; round < 3; round++) {
      const first = round % 2 === 0
      const a = await measure(first ? service.url : bare.url, service.apiKey)
      const b = await measure(first ? bare.url : service.url, service.apiKey)
      ratios.push(first ? { ours: a, bare: b } : { ours: b, bare: a })
    }
    const middle = ratios.toSorted((a, b) => a.ours / a.bare - b.ours / b.bare)[1] ?? { ours: 0, bare: 1 }
    return [
      {
        what: `GET /v1/ping, ${connections} connections, whole edge and PostgreSQL`,
        ours: `${Math.round(middle.ours)}/s`,
        against: `bare Fastify route: ${Math.round(middle.bare)}/s`,
        ratio: middle.ours / middle.bare,
        wanted: 'at least 0.5',
      },
    ]
  } finally {
    bare.stop()
    await service.stop()
  }
}

async function startBare() {
  const file = new URL('./bare-fastify.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [text] = (await once(child.stdout, 'data')) as [Buffer]
  const { url } = JSON.parse(text.toString()) as { url: string }
  return { url, stop: () => child.kill() }
}

async function measure(url: string, apiKey: string): Promise<number> {
  const options = { url: `${url}/v1/ping`, headers: [`X-API-Key: ${apiKey}`], connections }
  await measureGet({ ...options, seconds: 1 })
  return measureGet({ ...options, seconds })
}
