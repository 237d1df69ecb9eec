import { findChartRenderer } from './chart.ts'
import { debianKeyring } from './debian-packages.ts'

export type Part = 'npm' | 'chart' | 'archive' | 'image'

/** Programs and files that building and trying these parts needs. An image contains an installation as archives do. */
export function listRequirements(parts: Part[]): { programs: string[]; asRoot: boolean } {
  const programs = ['git', 'tar', 'gzip', 'npm', 'sha256sum']
  const hasImage = parts.includes('image')
  if (parts.includes('chart') && findChartRenderer() === undefined) programs.push('go')
  // The archive is started, and finds ClamAV in the system.
  if (hasImage || parts.includes('archive')) programs.push('clamd', 'freshclam')
  if (hasImage) programs.push('apt-get', 'dpkg-deb', debianKeyring, 'skopeo', 'podman', 'runc')
  return { programs, asRoot: hasImage }
}
