import { writeFileSync } from 'node:fs'
import { convert } from '../convert.ts'
import type { Encoding, ModelName } from '../manifest.ts'

const [name, encoding, sourceRoot] = process.argv.slice(2) as [ModelName, Encoding, string]
const standardOutput = 1
writeFileSync(standardOutput, await convert(name, encoding, sourceRoot))
