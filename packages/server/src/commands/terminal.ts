import { Command } from 'commander'
import type { Stores } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import type { AuditEntry } from '../domain/ports/operations.ts'
import { makeLogger } from '../runtime/logger.ts'
import { toCommandActor } from '../runtime/process.ts'
import { toPrintable } from '../runtime/text-lines.ts'

/** A command with the option `--json`, with which `print` writes one line of JSON instead of text. */
export function newCommand(name: string, about: string): Command {
  return new Command(name).description(about).option('--json', 'print one line of JSON')
}

/** Adds a subcommand and returns it, so that the caller can add its arguments and action. */
export function addCommand(parent: Command, name: string, about: string): Command {
  const command = newCommand(name, about)
  parent.addCommand(command)
  return command
}

export function print(command: Command, value: unknown, text: string) {
  const wantsJson = command.optsWithGlobals<{ json?: boolean }>().json === true
  const lines = text.split('\n').map(toPrintable)
  process.stdout.write(`${wantsJson ? JSON.stringify(value) : lines.join('\n')}\n`)
}

/** Opens the stores while `work` runs. The service may be running or not. */
export async function withStores<T>(work: (stores: Stores) => Promise<T>): Promise<T> {
  const { config } = loadConfig(process.env)
  const log = makeLogger({ level: 'warn', region: config.region, format: config.logFormat })
  // Imported here, so that commands without the database start without it.
  const { openStores } = await import('../compose/stores.ts')
  const stores = await openStores({ ...config, databaseConnections: 2 }, 'command', log)
  try {
    return await work(stores)
  } finally {
    await stores.close()
  }
}

/** Writes one entry to the audit log, in the name of the user of the system. */
export type CommandAudit = (
  action: string,
  target?: string,
  more?: Pick<AuditEntry, 'accountId' | 'detail'>,
) => Promise<void>

/**
 * Opens the stores for a command that changes something. `work` writes each change to the audit log, and all of it is
 * committed together.
 */
export const changeStores = <T>(work: (stores: Stores, audit: CommandAudit) => Promise<T>): Promise<T> =>
  withStores((stores) => stores.auth.audit.atomically(() => work(stores, makeCommandAudit(stores))))

export const makeCommandAudit =
  ({ auth }: Pick<Stores, 'auth'>): CommandAudit =>
  (action, target, more = {}) =>
    auth.audit.note({ actor: toCommandActor(), action, target, ...more })

/** A table whose columns are as wide as their widest cell. */
export function toTable(columns: string[], rows: (string | number | null)[][]): string {
  if (rows.length === 0) return '(none)'
  const cells = [columns, ...rows].map((row) => row.map((cell) => (cell === null ? '-' : toPrintable(String(cell)))))
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** One `label  value` line for each entry. */
export function toCard(rows: Record<string, string | number | null>): string {
  const width = Math.max(...Object.keys(rows).map((label) => label.length))
  return Object.entries(rows)
    .map(([label, value]) => `${label.padEnd(width)}  ${value ?? '-'}`)
    .join('\n')
}

/** Aborted by Ctrl-C or SIGTERM, so that a long command can clean up before it ends. */
export function newInterruptSignal(): AbortSignal {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())
  return interrupted.signal
}
