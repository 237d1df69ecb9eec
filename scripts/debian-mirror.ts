/** Mirrors from which scripts for maintainers install Debian. */
export const debianMirror = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian'
const securityMirror = process.env.DEBIAN_SECURITY_MIRROR ?? 'http://deb.debian.org/debian-security'

/** Lines for sources.list of Debian 12 with its updates; `options` are those of apt, such as `[signed-by=FILE]`. */
export function listDebianSources(options = ''): string {
  const suites = [`${debianMirror} bookworm`, `${debianMirror} bookworm-updates`, `${securityMirror} bookworm-security`]
  return suites.map((suite) => `deb ${options} ${suite} main\n`).join('')
}
