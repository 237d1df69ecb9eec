import { makeAdmin } from './console.ts'
import { makeOperate } from './start-service.ts'

type CreatedAccount = { id: string; api_key: string; webhook_secret: string }

/**
 * Returns the service that the test run started. For another service, set ASSAY_TEST_SERVICE to
 * `{"url": "...", "metricsPort": 1, "settings": {environment for the operator's program}, "consoleLink": "..."}`.
 */
export function getSharedService() {
  const handle = process.env.ASSAY_TEST_SERVICE
  if (handle === undefined) throw new Error('Run the tests with npm test: it starts the service that they talk to.')
  const { url, metricsPort, settings, consoleLink } = JSON.parse(handle) as {
    url: string
    metricsPort: number
    settings: NodeJS.ProcessEnv
    consoleLink: string
  }
  const operate = makeOperate(settings)

  return {
    url,
    metricsPort,
    /** Invitation of the first operator. The link works once, so that only one test file may use it. */
    consoleLink,
    admin: makeAdmin(url, settings.ASSAY_ADMIN_TOKEN ?? ''),
    /** Environment that points the operator's program at this service. */
    settings,
    operate,
    /** Creates an account with a generous rate limit; `options` are those of the command line. */
    createAccount: async (...options: string[]) =>
      (await operate('accounts', 'create', '--name', 'test', '--rate', '100000/1m', ...options)) as CreatedAccount,
  }
}
