import { mock } from 'node:test'

/**
 * Loaded into a service before its own code, by `--import`. Its timers follow the real time, until SIGUSR2 arrives: then
 * the minutes of CLOCK_MINUTES pass `speed` times as fast, and the service writes `clock: done` to its log.
 */
const speed = 60
const stepMs = 20
const every = setInterval
mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: Date.now() })
let last = performance.now()
let fastMs = 0
process.on('SIGUSR2', () => {
  fastMs = Number(process.env.CLOCK_MINUTES) * 60_000
})
every(() => {
  const now = performance.now()
  const realMs = Math.floor(now - last)
  last += realMs
  if (fastMs === 0) return mock.timers.tick(realMs)
  const passedMs = Math.min(fastMs, realMs * speed)
  mock.timers.tick(passedMs)
  fastMs -= passedMs
  if (fastMs === 0) process.stderr.write('clock: done\n')
}, stepMs)
