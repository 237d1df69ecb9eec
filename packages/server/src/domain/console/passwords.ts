import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)
/** What OWASP asks of argon2id: 19 MiB and two passes. About 25 ms. */
const cost = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 }

/** In the usual form, `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16)
  const tag = await derive('argon2id', { ...cost, message: password, nonce })
  const { memory, passes, parallelism } = cost
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${toText(nonce)}$${toText(tag)}`
}

export async function isPassword(password: string, stored: string): Promise<boolean> {
  const found = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/.exec(stored)
  if (found === null) return false
  const [, memory, passes, parallelism, salt = '', tag = ''] = found
  const expected = Buffer.from(tag, 'base64')
  const given = await derive('argon2id', {
    ...{ memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
    ...{ message: password, nonce: Buffer.from(salt, 'base64'), tagLength: expected.length },
  })
  return timingSafeEqual(given, expected)
}

/** To compare with where there is no member: whoever asks cannot tell by the time it takes. */
let nobodys: Promise<string> | undefined
export const getNobodysPassword = () => (nobodys ??= hashPassword(randomBytes(16).toString('hex')))

const toText = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
