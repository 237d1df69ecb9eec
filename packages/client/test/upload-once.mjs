/** A process of its own, and nothing in it but the built client: sends a file, and says what it took. */
const [entry = '', baseUrl = '', path = ''] = process.argv.slice(2)
const { newClient } = await import(entry)
let told = 0
let sent = 0
const { malware } = newClient({ apiKey: 'key', baseUrl, retries: 0 })
await malware.submitFile(path, {
  onProgress(progress) {
    told++
    sent = progress.sent
  },
})
process.stdout.write(JSON.stringify({ told, sent, peakBytes: process.resourceUsage().maxRSS * 1024 }))
