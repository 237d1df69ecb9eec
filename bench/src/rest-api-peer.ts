import { createRequire } from 'node:module'
import type { AddressInfo, Server } from 'node:net'

/**
 * clamav-rest-api as published, from a folder with its sources and dependencies. Only the address of clamd differs: its
 * configuration knows TCP alone, and here it gets the same socket as all others.
 */
const [socket = '', folder = ''] = process.argv.slice(2)
process.env.APP_PORT = '0'
process.env.APP_FORM_KEY = 'file'
process.env.APP_MAX_FILE_SIZE = String(300 * 1024 * 1024)
process.env.CLAMD_TIMEOUT = '120000'
const require = createRequire(`${folder}/package.json`)
const config = require(`${folder}/src/config`)
Object.assign(config.avConfig.clamdscan, { socket, host: false, port: false })
const server: Server = await require(`${folder}/src/server`).makeServer(config)
if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
const { port } = server.address() as AddressInfo
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/api/v1/scan` })}\n`)
