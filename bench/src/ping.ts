import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startService } from '../../acceptance/support/start-service.ts'
import { measureGet } from './load.ts'
import type { Row } from './results.ts'

const connections = 64
/** Many short turns, so that other work of the machine affects both sides equally. */
const turns = 10
const secondsPerTurn = 1.5

/** `GET /v1/ping` with authentication and admission in PostgreSQL, against a bare route. */
export async function benchPing(): Promise<Row[]> {
  const service = await startService({}, 'dropped')
  const bare = await startBare()
  const ask = (url: string, seconds: number) =>
    measureGet({ url: `${url}/v1/ping`, headers: [`X-API-Key: ${service.apiKey}`], connections, seconds })
  try {
    await ask(service.url, 2)
    await ask(bare.url, 2)
    let ours = 0
    let floor = 0
    for (let turn = 0; turn < turns; turn++) {
      ours += (await ask(service.url, secondsPerTurn)) / turns
      floor += (await ask(bare.url, secondsPerTurn)) / turns
    }
    return [
      {
        what: `GET /v1/ping, ${connections} connections, whole edge and PostgreSQL`,
        ours: `${Math.round(ours)}/s`,
        against: `bare Fastify route: ${Math.round(floor)}/s`,
        ratio: ours / floor,
        wanted: 'at least 0.5',
      },
    ]
  } finally {
    bare.stop()
    await service.stop()
  }
}

async function startBare() {
  const file = fileURLToPath(new URL('./bare-fastify.ts', import.meta.url))
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [text] = (await once(child.stdout, 'data')) as [Buffer]
  const { url } = JSON.parse(text.toString()) as { url: string }
  return { url, stop: () => child.kill() }
}
