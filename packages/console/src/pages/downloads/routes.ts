const own = {
  list: 'listDownloadCredentials',
  add: 'addDownloadCredential',
  remove: 'removeDownloadCredential',
} as const
const ofAccount = {
  list: 'listDownloadCredentialsOf',
  add: 'addDownloadCredentialOf',
  remove: 'removeDownloadCredentialOf',
} as const

/** The routes of the user's own account, or those of operators for one. They have the same forms and answers. */
export const routesOf = (accountId: string | undefined) => (accountId === undefined ? own : ofAccount)

export const listParams = (accountId: string | undefined) =>
  accountId === undefined ? {} : { params: { id: accountId } }

export const removeParams = (accountId: string | undefined, id: string) =>
  accountId === undefined ? { params: { id } } : { params: { account: accountId, id } }
