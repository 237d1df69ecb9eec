import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { underLoad } from '../under-load.ts'

export const soak: Case = {
  about:
    'the service may open 256 files and sockets, and 600 clients connect: a third send nothing, a third are in the middle ' +
    'of an upload; /livez answers meanwhile',
  run: () =>
    underLoad({
      under: ['prlimit', '--nofile=256:256'],
      async disturb({ url }) {
        const outcomes = new Map<string, number>()
        const count = (what: string) => void outcomes.set(what, (outcomes.get(what) ?? 0) + 1)
        const { hostname, port } = new URL(url)
        const sockets = Array.from({ length: 600 }, (_, n): Socket => {
          const socket = connect(Number(port), hostname)
          let got = ''
          socket.on('error', () => {})
          socket.on('data', (bytes) => {
            got += bytes
          })
          socket.once('close', () => count(got === '' ? 'closed' : (/ (\d{3}) /.exec(got)?.[1] ?? '')))
          if (n % 3 > 0) socket.write(n % 3 === 1 ? 'GET /v1/ping HTTP/1.1\r\n' : openUpload)
          return socket
        })
        await pause(10_000)
        const { status } = await fetch(`${url}/livez`, { signal: AbortSignal.timeout(10_000) })
        if (status !== 200) throw new Error(`/livez: ${status}`)
        const held = sockets.filter(({ destroyed }) => !destroyed).length
        const observed = toText(outcomes)
        for (const socket of sockets) socket.destroy()
        return `${held} of 600 connections held, the others: ${observed}`
      },
    }),
}

const openUpload = [
  'POST /v1/malware/submit/file HTTP/1.1',
  'Host: soak',
  'X-API-Key: soak-test-key',
  'Content-Type: multipart/form-data; boundary=b',
  'Content-Length: 100000000',
  '',
  '--b',
  'Content-Disposition: form-data; name="file"; filename="f"',
  '',
  'x'.repeat(100_000),
].join('\r\n')
