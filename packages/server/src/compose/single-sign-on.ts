import type { Config } from '../config/load-config.ts'
import { makeSsoStore } from '../database/console/sso-store.ts'
import { makeSingleSignOn, type SingleSignOn } from '../domain/console/single-sign-on.ts'
import type { IdentityProvider } from '../domain/ports/member-store.ts'
import { makeAddressPolicy } from '../domain/scans/web-address.ts'
import { makeGuardedAgent } from '../outbound/guarded-agent.ts'
import { makeIdentityProvider, makeIssuerFetch } from '../outbound/identity-provider.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Stores } from './stores.ts'

/** Makes the client of the issuer; undefined without one. It asks nothing before it is used. */
function makeProvider(config: Config): IdentityProvider | undefined {
  const { ssoIssuer: issuer, ssoClientId: clientId, publicUrl } = config
  if (issuer === undefined || clientId === undefined || publicUrl === undefined) return undefined
  const policy = makeAddressPolicy(config.outboundAllow)
  const proxy = config.outboundProxy
  const agent = makeGuardedAgent({ policy, ...(proxy === undefined ? {} : { proxy }) })
  return makeIdentityProvider({
    issuer,
    clientId,
    clientSecret: config.ssoClientSecret,
    scopes: config.ssoScopes,
    redirectUri: `${publicUrl}/console/sso`,
    signedOutUri: `${publicUrl}/console/sign-in`,
    claims: ['email', 'email_verified', config.ssoRoleClaim.split('.', 1)[0] ?? ''],
    fetch: makeIssuerFetch({ issuer: new URL(issuer), policy, agent }),
  })
}

/** Opens single sign-on; undefined without an issuer. An issuer that does not answer delays no start. */
export function openSingleSignOn(
  config: Config,
  { stores, log }: { stores: Pick<Stores, 'auth' | 'database'>; log: Logger },
) {
  const provider = makeProvider(config)
  if (provider === undefined) return undefined
  const sso: SingleSignOn = makeSingleSignOn({
    ...stores.auth,
    provider,
    log,
    store: makeSsoStore(stores.database),
    rules: {
      domains: config.ssoDomains,
      roleClaim: config.ssoRoleClaim,
      roles: config.ssoRoles,
      creates: config.ssoCreate === 'on',
      linksByEmail: config.ssoLink === 'email',
      isRequired: config.ssoRequired === 'on',
    },
  })
  void sso.findFault().then(
    (fault) => fault !== undefined && log.warn({ fault }, 'single sign-on is not available'),
    (error: unknown) => log.error({ err: error }, 'single sign-on could not be checked'),
  )
  return sso
}

/** Asks the issuer for `assay doctor`, and returns the sentence that it prints. */
export async function checkIssuer(config: Config): Promise<{ ok: boolean; says: string }> {
  const provider = makeProvider(config)
  if (provider === undefined) return { ok: true, says: 'off' }
  const fault = await provider.findFault()
  if (fault === undefined) return { ok: true, says: `${provider.issuer} answers` }
  return { ok: false, says: `${fault} Check ASSAY_SSO_ISSUER, and that this machine reaches it.` }
}
