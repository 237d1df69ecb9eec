import { type Installation, openInstallation } from '../acceptance/support/chaos-installation.ts'

/** An installation with the options of `npm start` and one account. */
export async function withInstallation<T>(
  settings: NodeJS.ProcessEnv,
  use: (installation: Installation & { apiKey: string }) => Promise<T>,
): Promise<T> {
  const apiKey = 'soak-test-key'
  const installation = await openInstallation({
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_NSFW_PROFILE: 'off',
    ASSAY_LOG_LEVEL: 'warn',
    NODE_OPTIONS: '--max-semi-space-size=16',
    ...settings,
  })
  try {
    return await use({ ...installation, apiKey })
  } finally {
    await installation.remove()
  }
}
