import { writeFile } from 'node:fs/promises'
import { convert } from '../convert.ts'
import type { Encoding, ModelName } from '../manifest.ts'

const [name, encoding, path] = process.argv.slice(2) as [ModelName, Encoding, string]
await writeFile(path, await convert(name, encoding), { flag: 'wx' })
