import { connect, type Socket } from 'node:net'
import { openIcapAdapter } from '../../packages/server/src/engines/external/icap/icap-adapter.ts'
import { toCarrier, toModRequest } from '../../packages/server/src/engines/external/icap/icap-messages.ts'
import { newExternalEngine } from '../../packages/server/test/external/external-support.ts'
import { newContent } from '../../packages/server/test/scans/scan-support.ts'
import { startCIcap, whyNoCIcap } from '../../scripts/test-c-icap.ts'
import type { Row } from './results.ts'

const rounds = 400
const warmUps = 50
const sizes = { '1 KB': 1000, '100 KB': 100_000 }

/**
 * A scan by c-icap as an engine of Assay, beside the same exchange over a kept connection with prepared bytes: the
 * difference is what Assay adds to the time of the engine.
 */
export async function benchExternalEngines(): Promise<Row[]> {
  if (whyNoCIcap) throw new Error(whyNoCIcap)
  const server = await startCIcap()
  const rows: Row[] = []
  try {
    for (const [name, bytes] of Object.entries(sizes)) rows.push(await compare(server.port, name, bytes))
    return rows
  } finally {
    await server.stop()
  }
}

async function compare(port: number, name: string, bytes: number): Promise<Row> {
  const service = {
    url: `icap://127.0.0.1:${port}/avscan`,
    host: `127.0.0.1:${port}`,
    method: 'RESPMOD' as const,
    userAgent: 'Assay',
  }
  const settings = { address: { host: '127.0.0.1', port }, service, usesPreview: false, threatHeader: undefined }
  const adapter = openIcapAdapter(settings, 1)
  const engine = newExternalEngine(adapter.scan)
  const content = newContent('some text '.repeat(bytes / 10))
  const signal = new AbortController().signal
  const head = toModRequest(service, toCarrier('RESPMOD', 'a.txt', content.bytes), undefined)
  const body = [`${content.bytes.toString(16)}\r\n`, content.whole ?? '', '\r\n0\r\n\r\n'].map((part) =>
    Buffer.from(part),
  )
  const request = Buffer.concat([head, ...body])
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setMaxListeners(0)
  const times = { ours: [] as number[], raw: [] as number[] }
  const measure = async (list: number[], scan: () => Promise<unknown>) => {
    const before = performance.now()
    await scan()
    list.push(performance.now() - before)
  }
  // Both take turns, so that a busy machine slows down both.
  for (let round = 0; round < warmUps + rounds; round++) {
    await measure(times.raw, () => exchange(socket, request))
    await measure(times.ours, () => engine.scan(content, { signal }, { depth: 0, name: 'a.txt' }))
  }
  await engine.close()
  await adapter.close()
  socket.destroy()
  const [ours, raw] = [toMedian(times.ours), toMedian(times.raw)]
  return {
    what: `scan of ${name} by c-icap on the same machine, without a preview`,
    ours: `${ours.toFixed(2)} ms`,
    against: `the bare exchange: ${raw.toFixed(2)} ms`,
    ratio: ours / raw,
    wanted: `less than 1 ms more; ${(ours - raw).toFixed(2)} ms`,
  }
}

const toMedian = (list: number[]) => list.slice(warmUps).toSorted((one, other) => one - other)[rounds / 2] ?? 0

/** Sends the request and waits for a 204, which has no body. */
const exchange = (socket: Socket, request: Buffer) =>
  new Promise<void>((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!text.endsWith('\r\n\r\n')) return
      socket.off('data', onData)
      if (text.startsWith('ICAP/1.0 204')) resolve()
      else reject(new Error(text))
    }
    socket.on('data', onData).once('close', () => reject(new Error('c-icap closed the connection')))
    socket.write(request)
  })
