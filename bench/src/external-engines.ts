import { connect, type Socket } from 'node:net'
import { openIcapAdapter } from '../../packages/server/src/engines/external/icap/icap-adapter.ts'
import { toCarrier, toModRequest } from '../../packages/server/src/engines/external/icap/icap-connection.ts'
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
    for (const usesPreview of [false, true]) {
      for (const [name, bytes] of Object.entries(sizes)) {
        rows.push(await compare(server.port, { name, bytes, usesPreview }))
      }
    }
    return rows
  } finally {
    await server.stop()
  }
}

type Case = { name: string; bytes: number; usesPreview: boolean }

async function compare(port: number, { name, bytes, usesPreview }: Case): Promise<Row> {
  const service = {
    url: `icap://127.0.0.1:${port}/avscan`,
    host: `127.0.0.1:${port}`,
    method: 'RESPMOD' as const,
    userAgent: 'Assay',
  }
  const settings = { address: { host: '127.0.0.1', port }, service, usesPreview, threatHeader: undefined }
  const adapter = openIcapAdapter(settings, 1)
  const engine = newExternalEngine(adapter.scan)
  const content = newContent('some text '.repeat(bytes / 10))
  const signal = new AbortController().signal
  const head = toModRequest(
    service,
    toCarrier('RESPMOD', 'a.txt', content.bytes),
    usesPreview ? previewBytes : undefined,
  )
  const parts = toParts(head, content.whole ?? Buffer.alloc(0), usesPreview)
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setMaxListeners(0)
  const costs = { ours: newCosts(), raw: newCosts() }
  const measure = async ({ times, cpu }: Costs, scan: () => Promise<unknown>) => {
    const [before, cpuBefore] = [performance.now(), process.cpuUsage()]
    await scan()
    times.push(performance.now() - before)
    const { user, system } = process.cpuUsage(cpuBefore)
    cpu.push(user + system)
  }
  // Both take turns, so that a busy machine slows down both.
  for (let round = 0; round < warmUps + rounds; round++) {
    await measure(costs.raw, () => exchange(socket, parts))
    await measure(costs.ours, () => engine.scan(content, { signal }, { depth: 0, name: 'a.txt' }))
  }
  await engine.close()
  await adapter.close()
  socket.destroy()
  const [ours, raw] = [toMedian(costs.ours.times), toMedian(costs.raw.times)]
  const [cpu, rawCpu] = [toMedian(costs.ours.cpu), toMedian(costs.raw.cpu)]
  return {
    what: `scan of ${name} by c-icap on the same machine, ${usesPreview ? 'with' : 'without'} a preview`,
    ours: `${ours.toFixed(2)} ms, ${cpu.toFixed(0)} \u00b5s of processor time`,
    against: `the bare exchange: ${raw.toFixed(2)} ms, ${rawCpu.toFixed(0)} \u00b5s`,
    ratio: ours / raw,
    wanted: `less than 1 ms more; ${(ours - raw).toFixed(2)} ms, ${(cpu - rawCpu).toFixed(0)} \u00b5s`,
  }
}

type Costs = { times: number[]; cpu: number[] }
const newCosts = (): Costs => ({ times: [], cpu: [] })

/** The bytes of a preview that c-icap asks for. */
const previewBytes = 1024
const end = '\r\n0\r\n\r\n'

/** The request, in two parts where the second one follows after the answer to the preview. */
function toParts(head: Buffer, body: Buffer, usesPreview: boolean): Buffer[] {
  const toChunk = (bytes: Buffer, after: string) =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from(after)])
  if (!usesPreview) return [Buffer.concat([head, toChunk(body, end)])]
  if (body.length <= previewBytes) return [Buffer.concat([head, toChunk(body, '\r\n0; ieof\r\n\r\n')])]
  const first = Buffer.concat([head, toChunk(body.subarray(0, previewBytes), end)])
  return [first, toChunk(body.subarray(previewBytes), end)]
}

const toMedian = (list: number[]) => list.slice(warmUps).toSorted((one, other) => one - other)[rounds / 2] ?? 0

/** Sends each part of the request and waits for its answer, at last for a 204, which has no body. */
const exchange = (socket: Socket, parts: Buffer[]) =>
  new Promise<void>((resolve, reject) => {
    let text = ''
    let next = 0
    const send = () => socket.write(parts[next++] ?? '')
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!text.endsWith('\r\n\r\n')) return
      const isContinue = text.startsWith('ICAP/1.0 100') && next < parts.length
      const isDone = text.startsWith('ICAP/1.0 204') && next === parts.length
      if (isContinue) {
        text = ''
        send()
        return
      }
      socket.off('data', onData)
      if (isDone) resolve()
      else reject(new Error(text))
    }
    socket.on('data', onData).once('close', () => reject(new Error('c-icap closed the connection')))
    send()
  })
