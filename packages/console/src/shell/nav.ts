export type Place = { path: string; label: string }

/** What those who hold an account see. */
export const accountPlaces: Place[] = [
  { path: '/', label: 'Overview' },
  { path: '/scan', label: 'Scan' },
  { path: '/history', label: 'History' },
  { path: '/usage', label: 'Usage' },
  { path: '/keys', label: 'API keys' },
  { path: '/webhooks', label: 'Webhooks' },
  { path: '/account', label: 'Account' },
]

/** What those who run the service see. */
export const operatorPlaces: Place[] = [
  { path: '/operator/status', label: 'Status' },
  { path: '/operator/accounts', label: 'Accounts' },
  { path: '/operator/plans', label: 'Plans' },
  { path: '/operator/jobs', label: 'Jobs' },
  { path: '/operator/deliveries', label: 'Deliveries' },
  { path: '/operator/signatures', label: 'Signatures' },
  { path: '/operator/lists', label: 'Allow and block' },
  { path: '/operator/audit', label: 'Audit log' },
  { path: '/operator/system', label: 'System' },
]
