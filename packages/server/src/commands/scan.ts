import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import type { openScanner } from '../compose/local-scan.ts'
import { loadConfig } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeLogger } from '../runtime/logger.ts'
import { newCommand, print, toCard } from './terminal.ts'

/** The exit codes of clamscan: 0 all clean, 1 a threat, 2 a file could not be scanned. */
const exitCodes = { clean: 0, threat: 1, error: 2 }

export function makeScanCommand(): Command {
  return newCommand('scan', 'scan files for malware without the service, an account or a stored result')
    .argument('<file...>', 'files to scan')
    .option('--nsfw', 'scan images for NSFW content instead')
    .action(async (files: string[], { nsfw }: { nsfw?: true }, command: Command) => {
      for (const file of files) await requireFile(file)
      const { config } = loadConfig(process.env)
      const log = makeLogger({ level: 'warn', region: config.region, format: config.logFormat })
      // Imported here, so that other commands start without loading the engines.
      const { openScanner } = await import('../compose/local-scan.ts')
      const scanner = await openScanner(config, log, nsfw ? 'nsfw_image' : 'malware')
      try {
        const results = []
        for (const file of files) {
          const result = await scanner.scan(createReadStream(file, { highWaterMark: 256 * 1024 }), basename(file))
          results.push({ file, ...result })
          process.exitCode = Math.max(Number(process.exitCode ?? 0), exitCodes[result.status])
        }
        print(command, files.length === 1 ? results[0] : results, results.map(toText).join('\n\n'))
      } finally {
        await scanner.close()
      }
    })
}

type Result = { file: string } & Awaited<ReturnType<Awaited<ReturnType<typeof openScanner>>['scan']>>

const toText = ({ file, status, content_length, content_type, signals, metadata }: Result) =>
  toCard({
    file,
    verdict: [status, ...signals].join('  '),
    content: `${content_length} bytes, ${content_type}`,
    ...metadata,
  })

async function requireFile(path: string) {
  const stats = await stat(path).catch((error: Error) => {
    throw new OperatorMistake(`${path} cannot be read: ${error.message}.`)
  })
  if (!stats.isFile()) throw new OperatorMistake(`${path} is not a file.`)
  if (stats.size === 0) throw new OperatorMistake(`${path} is empty, so there is nothing to scan.`)
}
