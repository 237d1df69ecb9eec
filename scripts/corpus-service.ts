import { startService, withoutImages } from '../acceptance/support/start-service.ts'

/** The service at ASSAY_URL with the key ASSAY_API_KEY, or one that is started. The caller stops it. */
export async function openCorpusService() {
  const { ASSAY_URL: url, ASSAY_API_KEY: key } = process.env
  if (url !== undefined && key !== undefined) return { url, key, stop: async () => {} }
  // The service ends with this process, but only if the process ends by itself.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const service = await startService(withoutImages, 'dropped')
  const account = await service.operate('accounts', 'create', '--name', 'corpus', '--rate', '100000/1m')
  return { url: service.url, key: (account as { api_key: string }).api_key, stop: () => service.stop() }
}
