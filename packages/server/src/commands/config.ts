import type { Command } from 'commander'
import { checkExternal } from '../compose/external-engines.ts'
import { loadConfig, toShownValue } from '../config/load-config.ts'
import { newCommand, print, toTable } from './terminal.ts'

export function makeConfigCommand(): Command {
  return newCommand('config', 'show all settings with their values and origins').action(
    async (_options: unknown, command: Command) => {
      const { config, settings, warnings } = loadConfig(process.env)
      await checkExternal(config)
      const json = settings.map((s) => ({ name: s.env, value: toShownValue(s), origin: s.origin, secret: s.secret }))
      const rows = json.map(({ name, value, origin }) => [name, value, origin])
      print(
        command,
        { settings: json, warnings },
        [toTable(['setting', 'value', 'origin'], rows), ...warnings].join('\n'),
      )
    },
  )
}
