import type { IconName } from './icon.tsx'

export type Place = { path: string; label: string; icon: IconName }

/** What those who hold an account see. */
export const accountPlaces: Place[] = [
  { path: '/', label: 'Overview', icon: 'overview' },
  { path: '/scan', label: 'Scan', icon: 'scan' },
  { path: '/history', label: 'History', icon: 'history' },
  { path: '/usage', label: 'Usage', icon: 'usage' },
  { path: '/keys', label: 'API keys', icon: 'keys' },
  { path: '/webhooks', label: 'Webhooks', icon: 'webhooks' },
  { path: '/account', label: 'Account', icon: 'account' },
]

/** What those who run the service see. */
export const operatorPlaces: Place[] = [
  { path: '/operator/status', label: 'Status', icon: 'status' },
  { path: '/operator/accounts', label: 'Accounts', icon: 'accounts' },
  { path: '/operator/plans', label: 'Plans', icon: 'plans' },
  { path: '/operator/jobs', label: 'Jobs', icon: 'jobs' },
  { path: '/operator/deliveries', label: 'Deliveries', icon: 'deliveries' },
  { path: '/operator/signatures', label: 'Signatures', icon: 'signatures' },
  { path: '/operator/lists', label: 'Allow and block', icon: 'lists' },
  { path: '/operator/audit', label: 'Audit log', icon: 'audit' },
  { path: '/operator/system', label: 'System', icon: 'system' },
]
