import { listOf, oneOf, type Reader, text } from './readers.ts'
import { setting } from './setting.ts'

/** An OpenID Connect issuer. Only an issuer on this machine may do without TLS. */
const issuerUrl: Reader<string> = (value) => {
  const url = URL.parse(value)
  const isLocal = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  const isSecure = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal)
  if (url === null || !isSecure || /\s/.test(value) || url.search + url.hash + url.username + url.password !== '') {
    throw new Error('must be the URL of an issuer such as https://login.example.com, without a query')
  }
  return value
}

const emailDomain: Reader<string> = (value) => {
  const domain = value.toLowerCase()
  if (!/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]*[a-z0-9]$/.test(domain)) {
    throw new Error('must be domains such as example.com, without @, separated by commas')
  }
  return domain
}

const accountRole = /^(owner|member):([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i

/** Reads a rule of the role mapping, `value=role`. */
const roleRule = (text: string) => {
  const at = text.lastIndexOf('=')
  const value = text.slice(0, at).trim()
  const given = text.slice(at + 1).trim()
  const [, role, accountId] = accountRole.exec(given) ?? []
  if (at > 0 && value !== '') {
    if (given === 'operator' && value !== '*') return { value, role: 'operator' as const, accountId: null }
    if (role !== undefined && accountId !== undefined) {
      return { value, role: role.toLowerCase() as 'owner' | 'member', accountId: accountId.toLowerCase() }
    }
  }
  throw new Error(
    'must be rules such as admins=operator or staff=member:ACCOUNT_ID, separated by commas. The value * stands for everybody, and cannot give the role operator',
  )
}

/** Settings of single sign-on to the console. */
export const ssoSettings = {
  ssoIssuer: setting('ASSAY_SSO_ISSUER', issuerUrl, {
    about: 'URL of an OpenID Connect issuer, with which people sign in to the console. Unset: passwords only.',
  }),
  ssoClientId: setting('ASSAY_SSO_CLIENT_ID', text, {
    about: 'Client id that the issuer gave to Assay.',
  }),
  ssoClientSecret: setting('ASSAY_SSO_CLIENT_SECRET', text, {
    secret: true,
    about: 'Client secret that the issuer gave to Assay. Unset: a public client, which PKCE alone protects.',
  }),
  ssoScopes: setting('ASSAY_SSO_SCOPES', listOf(text), {
    fallback: 'openid,email,profile',
    about: 'Scopes that Assay asks the issuer for. Some issuers need groups to send the role claim.',
  }),
  ssoDomains: setting('ASSAY_SSO_DOMAINS', listOf(emailDomain), {
    fallback: '',
    about: 'Domains of the email addresses that may use single sign-on, without their subdomains. Empty: all.',
  }),
  ssoRoleClaim: setting('ASSAY_SSO_ROLE_CLAIM', text, {
    fallback: 'groups',
    about: 'Claim with the groups or roles of a person, or a path to it such as realm_access.roles.',
  }),
  ssoRoles: setting('ASSAY_SSO_ROLES', listOf(roleRule), {
    fallback: '',
    about: 'Roles for values of that claim: admins=operator,team=owner:ACCOUNT_ID,*=member:ACCOUNT_ID. Empty: none.',
  }),
  ssoCreate: setting('ASSAY_SSO_CREATE', oneOf('on', 'off'), {
    fallback: 'off',
    about: 'Whether the first single sign-on of a person with a role creates their access.',
  }),
  ssoLink: setting('ASSAY_SSO_LINK', oneOf('confirm', 'email'), {
    fallback: 'confirm',
    about: 'How people who have a password are linked: by themselves on the page You, or by their verified address.',
  }),
  ssoRequired: setting('ASSAY_SSO_REQUIRED', oneOf('on', 'off'), {
    fallback: 'off',
    about: 'Whether sign-in with a password is refused. Links of the operators commands keep working.',
  }),
}
