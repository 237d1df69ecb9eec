import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from '../case.ts'
import { toP99 } from '../health.ts'
import { withInstallation } from '../installation.ts'
import { readPeakRss, readRss } from '../memory.ts'

const uploads = 1000
const bytesPerSecond = 4096
const seconds = 90

export const soak: Case = {
  about: `${uploads} uploads at 4 KB a second for ${seconds} s: RSS at most 400 MB, ping p99 under 100 ms`,
  run: () =>
    withInstallation({}, async ({ url, pid, apiKey }) => {
      const quiet: number[] = []
      await pingUntil(performance.now() + 10_000, url, apiKey, quiet)
      const before = readRss(pid())
      const sockets: Socket[] = []
      let lost = 0
      for (let n = 0; n < uploads; n++) {
        sockets.push(openUpload(url, apiKey, n % 2 === 0 ? 'scan' : 'submit', () => lost++))
        if (n % 50 === 0) await pause(20)
      }
      const times: number[] = []
      const piece = Buffer.alloc(bytesPerSecond / 2, 'slow ')
      const endsAt = performance.now() + seconds * 1000
      const pinging = pingUntil(endsAt, url, apiKey, times)
      for (let at = 0; performance.now() < endsAt; at = (at + 50) % uploads) {
        // Each upload gets a piece every half second, one group after the other.
        for (const socket of sockets.slice(at, at + 50)) if (!socket.destroyed) socket.write(piece)
        await pause(500 / (uploads / 50))
      }
      await pinging
      const [rss, peak, p99] = [readRss(pid()), readPeakRss(pid()), toP99(times)]
      const rate =
        Math.round((sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0) / uploads / seconds) * 10) / 10
      for (const socket of sockets) socket.destroy()
      const observed = `RSS ${before} MB before, ${rss} MB after ${seconds} s, ${peak} MB at the most; ping p99 ${p99} ms of ${times.length}, ${toP99(quiet)} ms before the uploads; ${lost} uploads lost; ${rate} bytes/s each`
      assert(lost === 0, observed)
      assert(peak <= 400 && p99 < 100, observed)
      return observed
    }),
}

async function pingUntil(endsAt: number, url: string, apiKey: string, times: number[]) {
  while (performance.now() < endsAt) {
    const startedAt = performance.now()
    const answer = await fetch(`${url}/v1/ping`, { headers: { 'x-api-key': apiKey } })
    await answer.body?.cancel()
    assert.equal(answer.status, 200)
    times.push(performance.now() - startedAt)
    await pause(20)
  }
}

function openUpload(url: string, apiKey: string, how: string, onLost: () => void): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let isOurs = false
  socket.on('error', () => {}).resume()
  socket.once('close', () => {
    if (!isOurs) onLost()
  })
  const destroy = socket.destroy.bind(socket)
  socket.destroy = (error) => {
    isOurs = error === undefined
    return destroy(error)
  }
  socket.write(
    [
      `POST /v1/malware/${how}/file HTTP/1.1`,
      'Host: soak',
      `X-API-Key: ${apiKey}`,
      'Content-Type: multipart/form-data; boundary=b',
      'Content-Length: 20000000',
      '',
      '--b',
      'Content-Disposition: form-data; name="file"; filename="f"',
      '',
      '',
    ].join('\r\n'),
  )
  return socket
}
