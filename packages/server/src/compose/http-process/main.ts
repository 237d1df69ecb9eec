import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// As in main.ts of the service: all other imports follow the compile cache.
enableCompileCache(fileURLToPath(new URL('../../../../../node_modules/.cache/assay', import.meta.url)))

// The main process decides when this one stops, also when a terminal or systemd signals both.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
// Without the main process nothing can be answered.
process.on('disconnect', () => process.exit(1))

const { runHttpProcess } = await import('./run-http-process.ts')
await runHttpProcess()
process.exit()
