import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import type { AttemptLimits, AttemptStore } from '../ports/attempt-store.ts'
import { Problem } from '../problem.ts'

/** A person, network or browser whose failures are counted together, and how many failures cause no pause. */
export type Subject = { name: string; freeFailures: number }

const hourMs = 3_600_000
const limits = { firstPauseMs: 5000, longestPauseMs: 15 * 60_000, memoryMs: hourMs }

/**
 * Slows down guessing of passwords, codes and tokens. Each subject has a count of its own, so that a guesser delays
 * only attempts that share one with theirs.
 */
export function makeThrottle({ attempts }: { attempts: AttemptStore }) {
  return {
    /**
     * Counts an attempt as failed before it is checked, so that concurrent attempts count like successive ones. Throws
     * during a pause of any of the subjects.
     */
    async begin(subjects: [Subject, ...Subject[]]) {
      const counted: string[] = []
      for (const subject of subjects) {
        const refused = await attempts.countAttempt(subject.name, toLimits(subject))
        if (refused !== undefined) {
          await uncount(counted)
          throw toProblem(refused)
        }
        counted.push(subject.name)
      }
      return {
        /** Forgets the failures of the first subject, and takes back this attempt from the others. */
        async succeed() {
          const [first = '', ...others] = counted
          await attempts.forgetFailures(first)
          await uncount(others)
        },
        /** Takes the attempt back: it neither failed nor succeeded. */
        withdraw: () => uncount(counted),
      }
    },

    /** Throws during a pause of the subject, and counts nothing. */
    async requireNoPause(subject: Subject) {
      const refused = await attempts.findPause(subject.name, toLimits(subject))
      if (refused !== undefined) throw toProblem(refused)
    },
  }

  async function uncount(names: string[]) {
    for (const name of names) await attempts.uncountAttempt(name)
  }
}

export type Throttle = ReturnType<typeof makeThrottle>

const toLimits = ({ freeFailures }: Subject): AttemptLimits => ({ ...limits, freeFailures })

function toProblem({ waitMs }: { waitMs: number }): Problem {
  const seconds = Math.ceil(waitMs / 1000)
  const detail = `Too many failed attempts. Try again in ${seconds} s.`
  return new Problem({ kind: 'rate-limited', retryAfterSeconds: seconds, detail })
}

/**
 * Subjects of a sign-in from a device that is not known for this email address. The count of the address over all
 * networks bounds guessing from many of them.
 */
export const toStranger = (email: string, address: string): [Subject, ...Subject[]] => [
  { name: `guess:${email.toLowerCase()} ${toNetwork(address)}`, freeFailures: 5 },
  { name: `address:${toNetwork(address)}`, freeFailures: 50 },
  { name: `email:${email.toLowerCase()}`, freeFailures: 100 },
]

/** A device that signed in before is delayed by its own failures only. */
export const toDeviceSubject = (deviceDigest: string, memberId: string): Subject => ({
  name: `device:${deviceDigest} ${memberId}`,
  freeFailures: 10,
})

/** Confirmations of a password within a session. Another session of the same person has its own count. */
export const toSessionSubject = (sessionId: string): Subject => ({ name: `session:${sessionId}`, freeFailures: 5 })

export const toTokenSubject = (address: string): Subject => ({ name: `token:${toNetwork(address)}`, freeFailures: 50 })

/**
 * Returns the network that counts as one guesser: an IPv4 address, or the /64 of an IPv6 address, within which a single
 * customer can choose any address.
 */
export function toNetwork(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return mapped
  if (!isIPv6(address)) return isIPv4(address) ? address : 'unknown'
  // SocketAddress writes every form of an address the same way. Expanding `::` then gives eight groups.
  const { address: plain } = new SocketAddress({ address: address.split('%', 1)[0] ?? '', family: 'ipv6' })
  const [before = '', after] = plain.split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const groups = [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => '0'), ...tail]
  return `${groups.slice(0, 4).join(':')}::/64`
}
