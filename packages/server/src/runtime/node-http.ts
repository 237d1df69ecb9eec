/**
 * The functions of `node:http` that the service uses. An import of `node:http` would read all of its exports, some of
 * which load Node's `fetch`, WebSocket and HTTP/2: 50 ms of processor time in every process that starts.
 */
export const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule('node:http')
