import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eicarMember, newZip } from '../acceptance/support/archives.ts'
import { filePart, formType, images, toForm } from '../acceptance/support/forms.ts'
import { sendTo } from '../acceptance/support/http.ts'
import { startService } from '../acceptance/support/start-service.ts'
import { codeCacheSuffix } from './bundle-loader.ts'

/**
 * Lets a service answer requests of the usual kinds and write the code cache of its bundle (scripts/bundle-loader.ts),
 * unless there is one. Each later service takes 100 ms of processor time less, of 700, until it has answered a request.
 */
export async function writeCodeCache(bundles: string) {
  const dir = join(bundles, 'serve')
  // The name of the script has a hash that depends on the names of the scripts that it loads, and so on all content.
  const [script = ''] = /main-.{8}\.cjs/.exec(readFileSync(join(dir, 'main.js'), 'utf8')) ?? []
  if (existsSync(join(dir, `${script}${codeCacheSuffix}`))) return
  const service = await startService({ ASSAY_TEST_CODE_CACHE: 'write' })
  const uploads = {
    '/v1/malware/scan/file': newZip([eicarMember]),
    '/v1/malware/submit/file': 'text',
    '/v1/nsfw/images/scan/file': images['one.png'],
  }
  for (const [path, content] of Object.entries(uploads)) {
    const headers = { 'x-api-key': service.apiKey, 'content-type': formType }
    await sendTo(service.url, { method: 'POST', path, headers, body: toForm([filePart(content)]) })
  }
  await service.stop()
}
