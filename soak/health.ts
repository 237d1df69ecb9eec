import { setTimeout as pause } from 'node:timers/promises'

/** Polls the health of a service and records durations and statuses. */
export function watchHealth(url: string) {
  const livezMs: number[] = []
  const readyzMs: number[] = []
  const reasons = new Set<string>()
  let failures = 0
  let isOver = false
  const watching = Promise.all([poll('/livez', livezMs), poll('/readyz', readyzMs)])

  async function poll(path: string, times: number[]) {
    while (!isOver) {
      const startedAt = performance.now()
      const answer = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)
      if (answer === undefined) failures++
      else {
        times.push(performance.now() - startedAt)
        const text = await answer.text().catch(() => '{}')
        const { reasons: reported = [] } = JSON.parse(text || '{}') as { reasons?: string[] }
        for (const reason of reported) reasons.add(reason.replaceAll(/\d+ s\b/g, 'N s'))
      }
      await pause(100)
    }
  }

  return {
    async end() {
      isOver = true
      await watching
      return { livezMs: toP99(livezMs), readyzMs: toP99(readyzMs), reasons: [...reasons], failures }
    },
  }
}

export function toP99(times: number[]): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0)
}

export async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/readyz`).catch(() => undefined)
  const { status } = JSON.parse((await answer?.text().catch(() => '')) || '{}') as { status?: string }
  return status === 'ready'
}
