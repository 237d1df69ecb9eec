import { makeAdmin } from './console.ts'
import { makeOperate } from './start-service.ts'

type CreatedAccount = { id: string; api_key: string; webhook_secret: string }

/**
 * Returns the service that the test run started. For another service, set ASSAY_TEST_SERVICE to
 * `{"url": "...", "metricsPort": 1, "settings": {environment for the operator's program}}`.
 */
export function getSharedService() {
  const handle = process.env.ASSAY_TEST_SERVICE
  if (handle === undefined) throw new Error('Run the tests with npm test: it starts the service that they talk to.')
  const { url, metricsPort, settings } = JSON.parse(handle) as {
    url: string
    metricsPort: number
    settings: NodeJS.ProcessEnv
  }
  const operate = makeOperate(settings)
  const admin = makeAdmin(url, settings.ASSAY_ADMIN_TOKEN ?? '')

  return {
    url,
    metricsPort,
    admin,
    /** Environment that points the operator's program at this service. */
    settings,
    operate,
    /** Creates an account with a generous rate limit; `options` are those of the command line. */
    createAccount: async (...options: string[]): Promise<CreatedAccount> => {
      const form = toForm(options)
      if (form === undefined || settings.ASSAY_ADMIN_TOKEN === undefined)
        return (await operate('accounts', 'create', '--name', 'test', '--rate', rate, ...options)) as CreatedAccount
      const { account, ...secrets } = await admin.createAccount({ plan: 'standard', rate, ...form })
      return { id: account.id, ...secrets }
    },
  }
}

const rate = '100000/1m'

/**
 * Returns the form of the admin API for options of the command line, or undefined when the form lacks one of them. The
 * API answers in milliseconds; a run of the operator's program takes half a second of processor time.
 */
function toForm(options: string[]): Record<string, string | number> | undefined {
  const form: Record<string, string | number> = {}
  for (let at = 0; at < options.length; at += 2) {
    const [name = '', value = ''] = options.slice(at, at + 2)
    if (name === '--credits') form.credits = Number(value)
    else if (name === '--plan' || name === '--rate') form[name.slice(2)] = value
    else return undefined
  }
  return form
}
