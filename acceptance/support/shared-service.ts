import { makeAdmin } from './console.ts'
import { makeOperate } from './start-service.ts'

type CreatedAccount = { id: string; api_key: string; webhook_secret: string }

/**
 * The one service that the test run started, or any other: set ASSAY_TEST_SERVICE to
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
    /** For the first operator. It works once, so one test file uses it. */
    consoleLink,
    admin: makeAdmin(url, settings.ASSAY_ADMIN_TOKEN ?? ''),
    /** Environment that points the operator's program at this service. */
    settings,
    operate,
    /** A new account with a generous rate; options as on the command line. */
    createAccount: async (...options: string[]) =>
      (await operate('accounts', 'create', '--name', 'test', '--rate', '100000/1m', ...options)) as CreatedAccount,
  }
}
