import { hash, randomBytes, randomFillSync, randomInt } from 'node:crypto'
import { type BlockList, isIP, SocketAddress } from 'node:net'
import { crc32 } from 'node:zlib'
import type { ScanKind } from '@assay/contract'
import { newCache } from '../new-cache.ts'
import { Problem } from '../problem.ts'
import { toBlockList } from '../scans/web-address.ts'

const keyAlphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const keyStart = 'assay_'
const testKeyStart = 'assay_test_'

/**
 * A new key has 190 random bits and a checksum, by which secret scanners can recognise a leaked key without asking the
 * database.
 */
export function newApiKey({ isTest = false } = {}): string {
  const random = Array.from({ length: 32 }, () => keyAlphabet[randomInt(keyAlphabet.length)]).join('')
  return `${isTest ? testKeyStart : keyStart}${random}${toCheckDigits(random)}`
}

/** The SHA-256 of a key in hex, which alone is stored. A slow hash would cost 78 ms and adds nothing at 190 bits. */
export const toKeyDigest = (key: string): string => hash('sha256', key, 'hex')

/** The beginning of a key, shown so that people can tell their keys apart. At most a third of a short key. */
export function toKeyPrefix(key: string): string {
  const maxLength = key.startsWith(testKeyStart) ? 16 : 12
  return key.slice(0, Math.min(maxLength, Math.floor(key.length / 3)))
}

/** A secret in the form of Standard Webhooks, so that their libraries accept it as it is. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

function toCheckDigits(text: string): string {
  let remainder = crc32(text)
  let digits = ''
  for (let i = 0; i < 6; i++) {
    digits = keyAlphabet[remainder % keyAlphabet.length] + digits
    remainder = Math.floor(remainder / keyAlphabet.length)
  }
  return digits
}

const randomPool = Buffer.allocUnsafeSlow(16 * 1024)
let usedBytes = randomPool.length

/** Random bytes for keys, nonces and ids. They are drawn in bulk, because a system call for each use costs more. */
export function drawRandom(bytes: number): Buffer {
  if (usedBytes + bytes > randomPool.length) {
    randomFillSync(randomPool)
    usedBytes = 0
  }
  const drawn = Buffer.from(randomPool.subarray(usedBytes, usedBytes + bytes))
  randomPool.fill(0, usedBytes, usedBytes + bytes)
  usedBytes += bytes
  return drawn
}

/** The actions that a key can be allowed: fetch results, scan and wait for the result, submit background scans. */
const keyActions = ['read', 'scan', 'submit'] as const
export type KeyAction = (typeof keyActions)[number]

const scanKinds: readonly ScanKind[] = ['malware', 'nsfw_image']

/** Restrictions of an API key; null where there is none. */
export type KeyRestrictions = {
  allow: KeyAction[] | null
  kinds: ScanKind[] | null
  /** Networks that the key may be used from, as `readNetwork` writes them. */
  networks: string[] | null
}

export const unrestricted: KeyRestrictions = { allow: null, kinds: null, networks: null }

/** Most networks of a key. */
export const maxNetworks = 100

/** A use of a key. `none` is an action that every key may do; an action on `all` kinds needs a key for all of them. */
export type KeyUse = { action: KeyAction | 'none'; kind: ScanKind | 'all'; address: string }

/**
 * Restrictions as they are stored: JSON, empty for a key without any. The same restrictions give the same text, so that
 * the admission gate can tell by comparing texts whether they have changed.
 */
export function toRestrictionsText({ allow, kinds, networks }: KeyRestrictions): string {
  const given = {
    ...(allow !== null && { allow: keyActions.filter((action) => allow.includes(action)) }),
    ...(kinds !== null && { kinds: scanKinds.filter((kind) => kinds.includes(kind)) }),
    ...(networks !== null && { networks: [...new Set(networks)].sort() }),
  }
  return Object.keys(given).length === 0 ? '' : JSON.stringify(given)
}

export const parseRestrictions = (text: string): KeyRestrictions =>
  text === '' ? unrestricted : { ...unrestricted, ...(JSON.parse(text) as Partial<KeyRestrictions>) }

/** Returns the network in its stored form, such as 10.0.0.0/8, or undefined. A single address is a network too. */
export function readNetwork(text: string): string | undefined {
  const [address = '', bits, ...rest] = text.trim().toLowerCase().split('/')
  const version = isIP(address)
  const widest = version === 6 ? 128 : 32
  const prefix = bits === undefined ? widest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  const isNetwork = version !== 0 && rest.length === 0 && prefix >= 0 && prefix <= widest
  // Callers with a mapped address count as IPv4, so a network of mapped addresses would match nobody.
  return isNetwork && toPlainAddress(address) === address ? `${address}/${prefix}` : undefined
}

const maxCompiled = 1000
const compiledChecks = newCache<{ restrictions: KeyRestrictions; networks: Networks | undefined }>(maxCompiled)

/** BlockList takes an IPv4 address for a part of `::/0`, so each family has a list of its own. */
type Networks = { 4: BlockList; 6: BlockList }

/** Finds the reason why a key with these restrictions may not be used in this way. */
export function findKeyRefusal(text: string, { action, kind, address }: KeyUse): Problem | undefined {
  if (text === '') return undefined
  const { restrictions, networks } = compileRestrictions(text)
  const { allow, kinds } = restrictions
  if (networks !== undefined && !includesAddress(networks, address))
    return newRefusal(`This API key may not be used from the address ${address || 'of this client'}.`)
  if (action === 'none') return undefined
  if (allow !== null && !allow.includes(action))
    return newRefusal(`This API key may not ${actionNames[action]}. It is restricted to: ${listNames(allow)}.`)
  const needed = kind === 'all' ? scanKinds : [kind]
  if (kinds !== null && !needed.every((one) => kinds.includes(one)))
    return newRefusal(
      `This API key may not be used for ${kind === 'all' ? 'all kinds of scans' : kindNames[kind]}. It is restricted to: ${listNames(kinds)}.`,
    )
  return undefined
}

const actionNames: Record<KeyAction, string> = {
  read: 'fetch results',
  scan: 'scan synchronously',
  submit: 'submit background scans',
}
const kindNames: Record<ScanKind, string> = { malware: 'malware scans', nsfw_image: 'NSFW image scans' }
const listNames = (names: readonly string[]) => names.join(', ') || 'nothing'
const newRefusal = (detail: string) => new Problem({ kind: 'key-restricted', detail })

function compileRestrictions(text: string) {
  const compiled = compiledChecks.get(text)
  if (compiled !== undefined) return compiled
  const restrictions = parseRestrictions(text)
  const { networks } = restrictions
  const made = { restrictions, networks: networks === null ? undefined : toNetworks(networks) }
  compiledChecks.set(text, made)
  return made
}

const toNetworks = (networks: readonly string[]): Networks => ({
  4: toBlockList(networks.filter((network) => !network.includes(':'))),
  6: toBlockList(networks.filter((network) => network.includes(':'))),
})

/** Makes a check whether an address, as a socket reports it, is in one of the networks. */
export function makeNetworkCheck(networks: readonly string[]): (address: string) => boolean {
  const lists = toNetworks(networks)
  return (address) => includesAddress(lists, address)
}

function includesAddress(networks: Networks, address: string): boolean {
  const plain = toPlainAddress(address)
  const version = isIP(plain)
  return version === 4 ? networks[4].check(plain) : version === 6 && networks[6].check(plain, 'ipv6')
}

/** The address without a zone, and an IPv4 address that is mapped into IPv6, in any notation, as IPv4. */
function toPlainAddress(address: string): string {
  const plain = address.split('%', 1)[0] ?? ''
  if (isIP(plain) !== 6) return plain
  const { address: written } = new SocketAddress({ address: plain, family: 'ipv6' })
  return /^::ffff:([\d.]+)$/i.exec(written)?.[1] ?? plain
}
