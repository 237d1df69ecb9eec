/** Sends one file with the built client in a separate process, and prints progress and peak memory. */
const [entry = '', baseUrl = '', path = ''] = process.argv.slice(2)
const { newClient } = await import(entry)
let calls = 0
let sent = 0
const { malware } = newClient({ apiKey: 'key', baseUrl, retries: 0 })
await malware.submitFile(path, {
  onProgress(progress) {
    calls++
    sent = progress.sent
  },
})
process.stdout.write(JSON.stringify({ calls, sent, peakBytes: process.resourceUsage().maxRSS * 1024 }))
