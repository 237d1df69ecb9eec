import type { Command } from 'commander'
import { openRegions } from '../compose/regions.ts'
import { loadConfig } from '../config/load-config.ts'
import { makeLogger } from '../runtime/logger.ts'
import { addCommand, newCommand, print, toCard, toTable } from './terminal.ts'

type Regions = Awaited<ReturnType<typeof openRegions>>
type Seen = Awaited<ReturnType<Regions['look']>>

const homeAddress = 'the database of the home region: postgres://user:password@host/assay'

export function makeRegionsCommand(): Command {
  const regions = newCommand('regions', 'share accounts, keys and plans between regions; nothing else ever leaves one')

  addCommand(regions, 'show', 'what this region shares, and with whom').action(
    async (_options: unknown, command: Command) => {
      const seen = await withRegions(({ look }) => look())
      print(command, toJson(seen), toText(seen))
    },
  )

  addCommand(regions, 'publish', 'make this the home region: others may follow its accounts').action(
    async (_options: unknown, command: Command) => {
      await withRegions(({ publish }) => publish())
      const next = 'Other regions may follow it: npm run assay -- regions follow <address of this database>.'
      print(command, { published: true }, `This is the home region now. ${next}`)
    },
  )

  addCommand(regions, 'follow', 'take accounts, keys and plans from the home region, before the first start here')
    .argument('<home>', homeAddress)
    .action(async (home: string, _options: unknown, command: Command) => {
      let last = ''
      await withRegions(({ follow }) =>
        follow(home, (tables) => {
          if (process.stderr.isTTY && tables.join() !== last) process.stderr.write(`waiting for ${tables.join(', ')}\n`)
          last = tables.join()
        }),
      )
      print(command, { following: true }, 'The accounts of the home region are here. Start the service.')
    })

  addCommand(regions, 'leave', 'stop following the home region; accounts and keys stay as they are')
    .argument('<home>', homeAddress)
    .action(async (home: string, _options: unknown, command: Command) => {
      await withRegions(({ leave }) => leave(home))
      print(command, { following: false }, 'This region has its own accounts from now on.')
    })
  return regions
}

async function withRegions<T>(work: (regions: Regions) => Promise<T>): Promise<T> {
  const { config } = loadConfig(process.env)
  const regions = await openRegions(config, makeLogger({ level: 'warn', region: config.region }))
  return work(regions).finally(regions.close)
}

const toJson = ({ region, role, incomplete, followers }: Seen) => ({
  ...{ region, role, incomplete },
  followers: followers.map(({ slot, active, behindBytes }) => ({ slot, active, behind_bytes: behindBytes })),
})

function toText({ region, role, incomplete, followers }: Seen): string {
  const rows = followers.map(({ slot, active, behindBytes }) => [slot, active ? 'yes' : 'no', behindBytes])
  return [
    toCard({ region, role, ...(incomplete.length === 0 ? {} : { 'on their way': incomplete.join(', ') }) }),
    ...(role === 'home' ? [toTable(['follower', 'connected', 'bytes behind'], rows)] : []),
  ].join('\n\n')
}
