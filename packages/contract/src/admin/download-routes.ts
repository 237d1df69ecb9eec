import * as downloads from './downloads.ts'
import { get, post, remove } from './route.ts'

const added = { body: downloads.AddDownloadCredential, answer: downloads.AddedDownloadCredential }

/** Routes of operators for the download credentials of an account. */
export const operatorDownloadRoutes = {
  listDownloadCredentialsOf: get(
    '/operator/accounts/{id}/downloads',
    'operator',
    'List the download credentials of an account, without their values',
    { answer: downloads.DownloadCredentials },
  ),
  addDownloadCredentialOf: post(
    '/operator/accounts/{id}/downloads',
    'operator',
    'Store a download credential for an account, in place of one for the same hosts or bucket',
    added,
  ),
  removeDownloadCredentialOf: remove(
    '/operator/accounts/{account}/downloads/{id}',
    'operator',
    'Remove a download credential of an account',
  ),
}

/** Routes for the download credentials of an account. */
export const accountDownloadRoutes = {
  listDownloadCredentials: get('/downloads', 'owner', 'List the download credentials, without their values', {
    answer: downloads.DownloadCredentials,
  }),
  addDownloadCredential: post(
    '/downloads',
    'owner',
    'Store a download credential, in place of one for the same hosts or bucket',
    added,
  ),
  removeDownloadCredential: remove('/downloads/{id}', 'owner', 'Remove a download credential'),
}
