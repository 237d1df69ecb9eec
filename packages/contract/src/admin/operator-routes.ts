import * as account from './account.ts'
import * as operator from './operator.ts'
import { get, patch, post, put, remove } from './route.ts'
import * as session from './session.ts'

/** What those who run the service see and do. */
export const operatorRoutes = {
  getStatus: get('/operator/status', 'operator', 'How the service is, and why', { answer: operator.Status }),
  listAccounts: get('/operator/accounts', 'operator', 'All accounts', { answer: operator.Accounts }),
  createAccount: post('/operator/accounts', 'operator', 'Create an account, with a link for its owner', {
    body: operator.CreateAccount,
    answer: operator.CreatedAccount,
  }),
  updateAccount: patch('/operator/accounts/{id}', 'operator', 'Change or suspend an account', {
    body: operator.UpdateAccount,
    answer: operator.AccountRow,
  }),
  inviteOwner: post('/operator/accounts/{id}/invitation', 'operator', 'A link for an owner of the account', {
    answer: session.Invitation,
  }),
  grantCredits: post('/operator/accounts/{id}/credits', 'operator', 'Grant credits for the current period', {
    body: operator.GrantCredits,
    answer: operator.AccountRow,
  }),
  listLedger: get('/operator/accounts/{id}/ledger', 'operator', 'The last entries of the ledger', {
    answer: operator.Ledger,
  }),
  listPlans: get('/operator/plans', 'operator', 'Plans', { answer: operator.Plans }),
  savePlan: put('/operator/plans/{name}', 'operator', 'Create or change a plan', { body: operator.SavePlan }),
  deletePlan: remove('/operator/plans/{name}', 'operator', 'Delete a plan that no account is on'),
  listJobs: get('/operator/jobs', 'operator', 'Jobs that wait or run', {
    query: operator.JobFilter,
    answer: operator.JobPage,
  }),
  retryJob: post('/operator/jobs/{id}/retry', 'operator', 'Let a held job be taken at once'),
  listFailingHosts: get('/operator/deliveries', 'operator', 'Receivers that fail, by host', {
    answer: operator.FailingHosts,
  }),
  pauseHost: post('/operator/deliveries/pause', 'operator', 'Pause or resume all receivers of a host', {
    body: operator.PauseHost,
  }),
  replayHost: post('/operator/deliveries/replay', 'operator', 'Send again all that failed at a host since a time', {
    body: operator.ReplayHost,
    answer: account.Replayed,
  }),
  getSignatures: get('/operator/signatures', 'operator', 'Signature files and models in use', {
    answer: operator.Signatures,
  }),
  uploadSignatures: put(
    '/operator/signatures/{name}',
    'operator',
    'Add a signature file of your own, or import one of ClamAV’s; the body is the file',
    { answer: operator.SignatureAdded },
  ),
  removeSignatures: remove(
    '/operator/signatures/{name}',
    'operator',
    'Remove a signature file that was added or imported',
  ),
  updateSignatures: post('/operator/signatures/update', 'operator', 'Look for new signatures now', {
    answer: operator.UpdateStarted,
  }),
  runSelfTest: post('/operator/self-test', 'operator', 'See that the engines find what they must', {
    answer: operator.SelfTest,
  }),
  listEntries: get('/operator/lists', 'operator', 'What is allowed or blocked by hash or signal', {
    answer: operator.ListEntries,
  }),
  addListEntry: post('/operator/lists', 'operator', 'Allow or block', {
    body: operator.AddListEntry,
    answer: operator.ListEntry,
  }),
  removeListEntry: remove('/operator/lists/{id}', 'operator', 'Take an entry off its list'),
  listAudit: get('/operator/audit', 'operator', 'Who changed what, newest first', {
    query: operator.AuditFilter,
    answer: operator.AuditPage,
  }),
  getSystem: get('/operator/system', 'operator', 'Version and settings with their origin', { answer: operator.System }),
  makeBackup: post('/operator/backup', 'operator', 'Save a backup below the data directory', {
    answer: operator.BackupDone,
  }),
}
