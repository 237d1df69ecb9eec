import type { Command } from 'commander'
import { openRegions } from '../compose/regions.ts'
import { loadConfig } from '../config/load-config.ts'
import { makeLogger } from '../runtime/logger.ts'
import { addCommand, makeCommandAudit, newCommand, print, toCard, toTable } from './terminal.ts'

type CopyProgress = Parameters<Parameters<Regions['follow']>[1]>[0]
type Regions = Awaited<ReturnType<typeof openRegions>>
type RegionStatus = Awaited<ReturnType<Regions['describe']>>

const reportMs = 10_000
const homeAddress = 'URL of the database of the home region: postgres://user:password@host/assay'

export function makeRegionsCommand(): Command {
  const regions = newCommand('regions', 'share accounts, keys and plans between regions')

  addCommand(regions, 'show', 'show the role of this region and its followers').action(
    async (_options: unknown, command: Command) => {
      const status = await withRegions(({ describe }) => describe())
      print(command, toJson(status), toText(status))
    },
  )

  addCommand(regions, 'publish', 'make this the home region, whose accounts other regions can follow').action(
    async (_options: unknown, command: Command) => {
      await changeRegions('regions.publish', ({ publish }) => publish())
      const next = 'Other regions can follow it: npm run assay -- regions follow <URL of this database>.'
      print(command, { published: true }, `This is the home region now. ${next}`)
    },
  )

  addCommand(
    regions,
    'follow',
    'copy accounts, keys and plans from the home region, before the first start of this region',
  )
    .argument('<home>', homeAddress)
    .action(async (home: string, _options: unknown, command: Command) => {
      await changeRegions('regions.follow', ({ follow }) => follow(home, makeProgressReport()))
      print(command, { following: true }, 'The accounts of the home region are copied. Start the service.')
    })

  addCommand(regions, 'leave', 'stop following the home region; accounts and keys are kept')
    .argument('<home>', homeAddress)
    .action(async (home: string, _options: unknown, command: Command) => {
      await changeRegions('regions.leave', ({ leave }) => leave(home))
      print(command, { following: false }, 'This region no longer follows the home region.')
    })
  return regions
}

/** Tells on standard error what the command waits for, when that changes and every ten seconds. */
function makeProgressReport() {
  let last = { what: '', at: 0 }
  return ({ tables, rows, failures }: CopyProgress) => {
    const why = failures === 0 ? '' : `; ${failures} attempts of PostgreSQL failed, and its log says why`
    const what = `copying ${tables.join(', ')}${why}`
    const now = performance.now()
    if (what === last.what && now - last.at < reportMs) return
    last = { what, at: now }
    process.stderr.write(`${what}${rows === 0 ? '' : `; ${rows} rows so far`}\n`)
  }
}

async function withRegions<T>(work: (regions: Regions) => Promise<T>): Promise<T> {
  const { config } = loadConfig(process.env)
  const regions = await openRegions(
    config,
    makeLogger({ level: 'warn', region: config.region, format: config.logFormat }),
  )
  return work(regions).finally(regions.close)
}

const changeRegions = (action: string, work: (regions: Regions) => Promise<void>) =>
  withRegions(async (regions) => {
    await work(regions)
    await makeCommandAudit(regions)(action)
  })

const toJson = ({ region, role, home, incomplete, followers }: RegionStatus) => ({
  region,
  role,
  ...(home && { home: { connected: !home.isCutOff, last_heard_at: home.heardAt } }),
  incomplete,
  followers: followers.map(({ slot, active, behindBytes }) => ({ slot, active, behind_bytes: behindBytes })),
})

function toText({ region, role, home, incomplete, followers }: RegionStatus): string {
  const contact = home?.isCutOff === true ? `cut off since ${home.heardAt.toISOString()}` : 'connected'

  const rows = followers.map(({ slot, active, behindBytes }) => [slot, active ? 'yes' : 'no', behindBytes])
  return [
    toCard({
      region,
      role,
      ...(home && { 'home region': contact }),
      ...(incomplete.length === 0 ? {} : { 'incomplete tables': incomplete.join(', ') }),
    }),
    ...(role === 'home' ? [toTable(['follower', 'connected', 'bytes behind'], rows)] : []),
  ].join('\n\n')
}
