import { type Command, InvalidArgumentError } from 'commander'
import { loadConfig } from '../config/load-config.ts'
import type { Source, SourceSettings } from '../domain/ports/source-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { checkWebAddress, makeAddressPolicy } from '../domain/scans/web-address.ts'
import { findMinisignKey, presets } from '../domain/sources.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { makeLogger } from '../runtime/logger.ts'
import {
  addCommand,
  changeStores,
  makeCommandAudit,
  newCommand,
  newInterruptSignal,
  print,
  toTable,
  withStores,
} from './terminal.ts'

type AddOptions = {
  hours?: number
  maxMb?: number
  sha256?: string
  minisign?: string
  fileName?: string
  publisher?: string
  licence?: string
}

const defaults = { everyHours: 24, maxMegabytes: 64 }
const soon = 'A worker downloads and tries it within seconds; npm run assay -- sources list shows the result.'

export function makeSourcesCommand(): Command {
  const sources = newCommand('sources', 'manage downloads of malware signatures of other publishers')

  addCommand(sources, 'list', 'show the sources, their age, and the signatures that are held back').action(
    async (_options: unknown, command: Command) => {
      const listed = await withStores(({ sources: store }) => store.listSources())
      print(command, listed.map(toJson), toText(listed))
    },
  )

  addCommand(sources, 'presets', 'show well-known free sources; none is used unless you add it').action(
    (_options: unknown, command: Command) => {
      const rows = presets.map(({ name, publisher, licence, url }) => [name, publisher, licence, url])
      print(command, presets.map(toPresetJson), toTable(['name', 'publisher', 'licence', 'url'], rows))
    },
  )

  addCommand(sources, 'add', 'add a source; its signatures are tried on known-good files before they are used')
    .argument('<name>', 'name of a preset, or a new name of letters, digits and hyphens', readSourceName)
    .argument('[url]', 'http or https address of a signature file, a zip or a tar.gz; not for a preset')
    .option('--hours <number>', 'hours between updates, 0 for none', readHours)
    .option('--max-mb <number>', 'largest download, in MB', readMegabytes)
    .option('--sha256 <hash|url>', 'SHA-256 of the download, or the URL of a list such as SHA256SUMS')
    .option('--minisign <key>', 'public key of minisign; the signature is at the URL with .minisig added', readKey)
    .option('--file-name <name>', 'name of the signature file, if the URL does not end in it')
    .option('--publisher <text>', 'publisher, for the list')
    .option('--licence <text>', 'licence, for the list')
    .action(async (name: string, url: string | undefined, options: AddOptions, command: Command) => {
      const settings = toSettings(name, url, options)
      await changeStores(async ({ sources: store }, audit) => {
        if (!(await store.addSource(settings))) throw new OperatorMistake(`There is already a source ${name}.`)
        await audit('sources.add', name, { detail: hideCredentials(settings.url) })
      })
      print(command, { name, url: settings.url }, `The source ${name} is added. ${soon}`)
    })

  addCommand(sources, 'update', 'download and try now')
    .argument('[name]', 'name of the source; all without it')
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const updated = await withStores(async (stores) => {
        const { config } = loadConfig(process.env)
        const log = makeLogger({ level: 'error', region: config.region, format: config.logFormat })
        // Imported here, so that other commands start without loading the engines.
        const { updateSources } = await import('../compose/sources/open-sources.ts')
        await makeCommandAudit(stores)('sources.update', name)
        return updateSources(config, { store: stores.sources, log, name, signal: newInterruptSignal() })
      })
      print(command, updated.map(toJson), toText(updated))
      if (updated.some(({ error }) => error !== null)) process.exitCode = 1
    })

  addCommand(sources, 'release', 'use a signature that was held back because it matches a known-good file')
    .argument('<source>', 'name of the source')
    .argument('<signature>', 'name of the signature, as sources list prints it')
    .action(async (name: string, signature: string, _options: unknown, command: Command) => {
      await changeStores(async ({ sources: store }, audit) => {
        const source = (await store.listSources()).find((one) => one.name === name)
        if (source === undefined) throw new OperatorMistake(`There is no source ${name}.`)
        if (!source.held.some((held) => held.name === signature)) {
          throw new OperatorMistake(`The source ${name} has no signature ${signature} that is held back.`)
        }
        await store.releaseSignature(name, signature)
        await audit('sources.release', name, { detail: signature })
      })
      print(command, { released: signature }, `${signature} is released. ${soon}`)
    })

  addCommand(sources, 'remove', 'remove a source and its signatures')
    .argument('<name>', 'name of the source')
    .action(async (name: string, _options: unknown, command: Command) => {
      await changeStores(async ({ sources: store }, audit) => {
        if (!(await store.removeSource(name))) throw new OperatorMistake(`There is no source ${name}.`)
        await audit('sources.remove', name)
      })
      print(command, { removed: name }, `${name} is removed. Every running service unloads it within seconds.`)
    })
  return sources
}

function toSettings(name: string, url: string | undefined, options: AddOptions): SourceSettings {
  const preset = presets.find((one) => one.name === name)
  if (url === undefined && preset === undefined) {
    throw new OperatorMistake(`${name} is no preset, so a URL is needed. npm run assay -- sources presets lists them.`)
  }
  const known = url === undefined ? preset : undefined
  const address = url ?? known?.url ?? ''
  const sha256 = options.sha256 ?? known?.sha256 ?? null
  requireAddress('The URL', address)
  if (sha256 !== null && !/^[0-9a-f]{64}$/i.test(sha256)) requireAddress('--sha256', sha256)
  return {
    name,
    url: address,
    fileName: options.fileName ?? null,
    everyHours: options.hours ?? known?.everyHours ?? defaults.everyHours,
    maxMegabytes: options.maxMb ?? known?.maxMegabytes ?? defaults.maxMegabytes,
    sha256,
    minisignKey: options.minisign ?? null,
    publisher: options.publisher ?? known?.publisher ?? null,
    licence: options.licence ?? known?.licence ?? null,
  }
}

function requireAddress(what: string, address: string) {
  const { config } = loadConfig(process.env)
  const [error] = checkWebAddress(address, makeAddressPolicy(config.outboundAllow))
  if (error !== undefined) throw new OperatorMistake(`${what} ${error}`)
}

function readSourceName(text: string): string {
  if (/^[a-z0-9]+(-[a-z0-9]+)*$/.test(text) && text.length <= 40) return text
  throw new InvalidArgumentError('Enter up to 40 small letters, digits and single hyphens.')
}

const readNumber = (min: number, max: number) => (text: string) => {
  const number = Number(text)
  if (/^\d{1,4}$/.test(text) && number >= min && number <= max) return number
  throw new InvalidArgumentError(`Enter a whole number from ${min} to ${max}.`)
}
const readHours = readNumber(0, 720)
const readMegabytes = readNumber(1, 256)

function readKey(text: string): string {
  if (findMinisignKey(text) !== undefined) return text.trim()
  throw new InvalidArgumentError('Enter the public key that minisign prints, such as RWQf6LRCGA9i53ml...')
}

function toText(listed: Source[]): string {
  const rows = listed.map((source) => [
    source.name,
    source.signatures,
    toAge(source),
    source.held.length,
    source.licence,
    source.error ?? (source.checkedAt === null ? 'waits for its first download' : 'ok'),
  ])
  const table = toTable(['name', 'signatures', 'age', 'held back', 'licence', 'state'], rows)
  const held = listed.flatMap(({ name, held }) => held.map((one) => `${name}: ${one.name} matches ${one.file}`))
  const refused = listed.flatMap(({ name, refused }) =>
    refused.map(({ file, reason }) => `${name}: ${file} is not used: ${reason}`),
  )
  return [table, ...held, ...refused].join('\n')
}

const toAge = ({ checkedAt, ageSeconds }: Source) =>
  checkedAt === null
    ? null
    : ageSeconds < 7200
      ? `${Math.floor(ageSeconds / 60)} min`
      : `${Math.floor(ageSeconds / 3600)} h`

const toPresetJson = ({ name, publisher, licence, url, everyHours }: (typeof presets)[number]) => ({
  name,
  publisher,
  licence,
  url,
  hours: everyHours,
})

const toJson = (source: Source) => ({
  name: source.name,
  url: hideCredentials(source.url),
  hours: source.everyHours,
  publisher: source.publisher,
  licence: source.licence,
  signatures: source.signatures,
  age_seconds: Math.round(source.ageSeconds),
  checked_at: source.checkedAt,
  changed_at: source.changedAt,
  attempted_at: source.attemptedAt,
  error: source.error,
  held: source.held,
  released: source.released,
  refused: source.refused,
  tested_files: source.testedFiles,
})
