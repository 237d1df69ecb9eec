import { pino } from 'pino'
import { openImageEngine } from '../../src/engines/nsfw/image-engine.ts'
import { readOwnModel } from '../../src/engines/nsfw/models/own-models.ts'
import { listImagePids } from './engine-support.ts'

/** Opens an engine with the model of the given directory, prints the id of its process, and waits to be killed. */
const models = [await readOwnModel(process.argv[2] ?? '')]
await openImageEngine({ models, profile: 'fast', processes: 1, log: pino({ level: 'silent' }) })
console.log(listImagePids()[0])
setInterval(() => {}, 60_000)
