import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import type { AttemptLimits, AttemptStore } from '../ports/member-store.ts'
import { Problem } from '../problem.ts'

/** A person, network or browser whose failures are counted together, and how many failures cause no pause. */
export type Subject = {
  name: string
  freeFailures: number
  /** Tells the person during a pause why they wait and what they can do. `time` is such as "5 minutes". */
  explain(time: string): string
}

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
          throw toProblem(subject, refused)
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
      if (refused !== undefined) throw toProblem(subject, refused)
    },
  }

  async function uncount(names: string[]) {
    for (const name of names) await attempts.uncountAttempt(name)
  }
}

export type Throttle = ReturnType<typeof makeThrottle>

const toLimits = ({ freeFailures }: Subject): AttemptLimits => ({ ...limits, freeFailures })

function toProblem({ explain }: Subject, { waitMs }: { waitMs: number }): Problem {
  const seconds = Math.ceil(waitMs / 1000)
  return new Problem({ kind: 'rate-limited', retryAfterSeconds: seconds, detail: explain(toTime(seconds)) })
}

function toTime(seconds: number): string {
  const [count, unit] = seconds <= 90 ? [seconds, 'second'] : [Math.ceil(seconds / 60), 'minute']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

const forgotten =
  'If you forgot the password, ask an operator of this service for a link to set a new one. You can use the link at once.'

/**
 * Subjects of a sign-in from a device that is not known for this email address. The count of the address over all
 * networks bounds guessing from many of them. Addresses without an account are counted and explained in the same way,
 * so that nobody learns which ones exist.
 */
export const toStranger = (email: string, address: string): [Subject, ...Subject[]] => [
  {
    name: `guess:${email.toLowerCase()} ${toNetwork(address)}`,
    freeFailures: 5,
    explain: (time) =>
      `Too many wrong passwords or codes for this email address. Wait ${time}, then try again. ${forgotten}`,
  },
  {
    name: `address:${toNetwork(address)}`,
    freeFailures: 50,
    explain: (time) =>
      `Too many failed sign-ins from your network, which other people may share. Wait ${time}, or use another network ` +
      'or a browser in which you signed in before.',
  },
  {
    name: `email:${email.toLowerCase()}`,
    freeFailures: 100,
    explain: (time) =>
      'Too many failed sign-ins for this email address, from several networks. Somebody may be guessing the password. ' +
      `Wait ${time}, or use a browser in which you signed in before: others do not delay it.`,
  },
]

/** A device that signed in before is delayed by its own failures only. */
export const toDeviceSubject = (deviceDigest: string, memberId: string): Subject => ({
  name: `device:${deviceDigest} ${memberId}`,
  freeFailures: 10,
  explain: (time) => `Too many wrong passwords or codes in this browser. Wait ${time}, then try again. ${forgotten}`,
})

/** Confirmations of a password within a session. Another session of the same person has its own count. */
export const toSessionSubject = (sessionId: string): Subject => ({
  name: `session:${sessionId}`,
  freeFailures: 5,
  explain: (time) => `Too many wrong passwords. You stay signed in. Wait ${time} before you try again. ${forgotten}`,
})

export const toTokenSubject = (address: string): Subject => ({
  name: `token:${toNetwork(address)}`,
  freeFailures: 50,
  explain: (time) =>
    `Too many wrong operator tokens from your network. Wait ${time}: until then the right token is refused as well.`,
})

/** Tests of the alert channels of an account: each counts like a failure, because it makes this service send. */
export const toAlertTestSubject = (accountId: string): Subject => ({
  name: `alert-test:${accountId}`,
  freeFailures: 10,
  explain: (time) => `Too many test messages. Wait ${time}, then try again.`,
})

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
