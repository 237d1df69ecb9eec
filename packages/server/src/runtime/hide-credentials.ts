/** URLs in a text. The length of the scheme is limited, so that a long text costs time in proportion to its length. */
const urls = /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>\\]*/gi

/** User name and password before the host. A token may be given as the user name, so both are hidden. */
const userInfo = /:\/\/[^/?#]*@/g

const parameters = /([?&;#])([\w.-]+)=([^&;#,]+)/g
const secretName = /token|secret|passw|passphrase|pwd|signature|credential|key|auth|session|jwt|^pass$|^sig$|^code$/i

/** Parts of a path, and fragments; not the host. */
const parts = /(?<!\/)([/#])(?!\/)([\w.-]+)/g
/** Long enough to be a token. The ids of Assay are UUIDs and stay readable. */
const token = /^(?:[\w-]{32,}|eyJ[\w.-]{20,})(?=\.?$)/
const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\.?$/i

/**
 * Hides passwords and tokens inside the URLs of a text: before the host, in parameters, and in the path, where some
 * providers of signatures put the token of a customer.
 */
export function hideCredentials(text: string): string {
  if (!text.includes('://')) return text
  return text.replace(urls, (url) =>
    url
      .replace(userInfo, '://(hidden)@')
      .replace(parameters, (whole, mark, name) => (secretName.test(name) ? `${mark}${name}=(hidden)` : whole))
      .replace(parts, (whole, mark, part) => (uuid.test(part) ? whole : `${mark}${part.replace(token, '(hidden)')}`)),
  )
}
