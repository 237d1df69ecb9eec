import { pino } from 'pino'
import { openImageEngine } from '../../src/engines/nsfw/image-engine.ts'
import { listImagePids, openTestModels } from './engine-support.ts'

/** Opens an engine, prints the process id of its process, and waits to be killed. */
const models = await openTestModels()
await openImageEngine({ models, profile: 'fast', processes: 1, log: pino({ level: 'silent' }) })
console.log(listImagePids()[0])
setInterval(() => {}, 60_000)
