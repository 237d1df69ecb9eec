import { maxCredits } from '@assay/contract/limits'
import { InvalidArgumentError } from 'commander'
import { validate as isUuid } from 'uuid'
import { findQuorum } from '../config/setting.ts'
import { findRate, type Rate } from '../domain/accounts/account.ts'
import { maxNetworks, readNetwork } from '../domain/accounts/keys.ts'
import { OperatorMistake } from '../domain/problem.ts'

// Parsers of option values. Commander prints the message of an InvalidArgumentError with the name of the option.

export function readCredits(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > maxCredits) {
    throw new InvalidArgumentError(`Enter a whole number from 0 to ${maxCredits}.`)
  }
  return Number(text)
}

export function readKeyLimit(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Enter a whole number from 1 to 999999.')
  return Number(text)
}

export function readRate(text: string): Rate {
  const rate = findRate(text)
  if (rate === undefined) throw new InvalidArgumentError('Enter a rate such as 50/1m, 10/1s or 5000/1d.')
  return rate
}

export function readDate(text: string): Date {
  const date = new Date(text)
  const day = text.slice(0, 10)
  // Date parses 31 February as 3 March.
  const exists = /^\d{4}-\d{2}-\d{2}$/.test(day) && toDay(new Date(day)) === day
  if (!exists || Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError('Enter a date such as 2027-01-31 or 2027-01-31T12:00:00Z.')
  }
  return date
}

const toDay = (date: Date) => (Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 10))

export function readName(text: string): string {
  if (text.trim() === '' || text.length > 200) throw new InvalidArgumentError('Enter a name of 1 to 200 characters.')
  return text
}

export function readReason(text: string): string {
  if (text.trim() === '' || text.length > 500) throw new InvalidArgumentError('Enter 1 to 500 characters.')
  return text.trim()
}

/** The verdict policy of an account. */
export function readPolicy(text: string): string {
  if (findQuorum(text) === undefined) throw new InvalidArgumentError('Enter any, or "quorum N" with N from 2 to 9.')
  return text
}

export function readHosts(text: string): string[] {
  const hosts = text.split(',').map((host) => host.trim().toLowerCase().replace(/\.$/, ''))
  const isHost = (host: string) => URL.parse(`http://${host.replace(/^\*\./, '')}/`)?.host === host.replace(/^\*\./, '')
  if (hosts.length > 100 || !hosts.every(isHost)) {
    throw new InvalidArgumentError(
      'Enter up to 100 hosts separated by commas, such as files.example.com,*.example.org.',
    )
  }
  return hosts
}

export function readNetworks(text: string): string[] {
  const networks = text.split(',').map((part) => readNetwork(part))
  if (networks.length > maxNetworks || networks.includes(undefined)) {
    throw new InvalidArgumentError(
      `Enter up to ${maxNetworks} networks separated by commas, such as 10.0.0.0/8,2001:db8::/32.`,
    )
  }
  return networks as string[]
}

/** A reader of a list of words separated by commas, each one of `words`. */
export const readWords =
  <T extends string>(words: Record<string, T>) =>
  (text: string): T[] =>
    text.split(',').map((part) => {
      const name = part.trim().toLowerCase()
      const word = Object.hasOwn(words, name) ? words[name] : undefined
      if (word !== undefined) return word
      throw new InvalidArgumentError(
        `Enter one or more of these, separated by commas: ${Object.keys(words).join(', ')}.`,
      )
    })

export function readId(text: string): string {
  if (!isUuid(text)) {
    throw new InvalidArgumentError('Enter an ID such as 0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b.')
  }
  return text.toLowerCase()
}

/** `none` removes an override or an expiry. It stays a word here because Commander turns null into an empty string. */
export const orNone =
  <T>(read: (text: string) => T) =>
  (text: string): T | 'none' =>
    text === 'none' ? text : read(text)

export const toNullable = <T>(value: T | 'none'): T | null => (value === 'none' ? null : value)

export function requireFound<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new OperatorMistake(`There is no ${what}.`)
  return found
}
