import * as account from './account.ts'
import * as activity from './activity.ts'
import { operatorAlertRoutes } from './alert-routes.ts'
import { operatorDownloadRoutes } from './download-routes.ts'
import { operatorKnowledgeRoutes } from './knowledge-routes.ts'
import * as operator from './operator.ts'
import { get, patch, post, put, remove } from './route.ts'
import * as session from './session.ts'

/** Routes for operators. */
export const operatorRoutes = {
  getStatus: get('/operator/status', 'operator', 'Show the state of the service and the reasons', {
    answer: operator.Status,
  }),
  getActivity: get('/operator/activity', 'operator', 'Show the last hour or day of all nodes together', {
    query: activity.ActivityQuery,
    answer: activity.ServiceActivity,
  }),
  listAccounts: get('/operator/accounts', 'operator', 'List accounts', { answer: operator.Accounts }),
  createAccount: post('/operator/accounts', 'operator', 'Create an account and an invitation link for its owner', {
    body: operator.CreateAccount,
    answer: operator.CreatedAccount,
  }),
  updateAccount: patch('/operator/accounts/{id}', 'operator', 'Change or suspend an account', {
    body: operator.UpdateAccount,
    answer: operator.AccountRow,
  }),
  inviteOwner: post(
    '/operator/accounts/{id}/invitation',
    'operator',
    'Create an invitation link for an owner of the account',
    {
      body: operator.InviteOwner,
      answer: session.Invitation,
    },
  ),
  listOperators: get('/operator/operators', 'operator', 'List operators', { answer: operator.Operators }),
  suspendOperator: post(
    '/operator/operators/{id}/suspend',
    'operator',
    'Suspend an operator, who is signed out and cannot sign in, or end the suspension',
    { body: operator.SuspendOperator },
  ),
  removeOperator: remove('/operator/operators/{id}', 'operator', 'Remove an operator and their memberships'),
  grantCredits: post('/operator/accounts/{id}/credits', 'operator', 'Grant credits for the current period', {
    body: operator.GrantCredits,
    answer: operator.AccountRow,
  }),
  listLedger: get('/operator/accounts/{id}/ledger', 'operator', 'List the latest ledger entries of an account', {
    answer: operator.Ledger,
  }),
  listPlans: get('/operator/plans', 'operator', 'List plans', { answer: operator.Plans }),
  savePlan: put('/operator/plans/{name}', 'operator', 'Create or change a plan', { body: operator.SavePlan }),
  deletePlan: remove('/operator/plans/{name}', 'operator', 'Delete a plan that no account is on'),
  listJobs: get('/operator/jobs', 'operator', 'List waiting and running jobs', {
    query: operator.JobFilter,
    answer: operator.JobPage,
  }),
  retryJob: post('/operator/jobs/{id}/retry', 'operator', 'Make a delayed job available immediately'),
  listFailingHosts: get('/operator/deliveries', 'operator', 'List failing webhook receivers by host', {
    answer: operator.FailingHosts,
  }),
  pauseHost: post('/operator/deliveries/pause', 'operator', 'Pause or resume all receivers on a host', {
    body: operator.PauseHost,
  }),
  replayHost: post(
    '/operator/deliveries/replay',
    'operator',
    'Send again all deliveries to a host that failed since a given time',
    {
      body: operator.ReplayHost,
      answer: account.Replayed,
    },
  ),
  getSignatures: get('/operator/signatures', 'operator', 'List signature files and models in use', {
    answer: operator.Signatures,
  }),
  uploadSignatures: put(
    '/operator/signatures/{name}',
    'operator',
    'Upload a signature or rule file; the body is the file',
    { answer: operator.SignatureAdded },
  ),
  removeSignatures: remove('/operator/signatures/{name}', 'operator', 'Remove an uploaded signature or rule file'),
  updateSignatures: post('/operator/signatures/update', 'operator', 'Update the signatures now', {
    answer: operator.UpdateStarted,
  }),
  listSources: get('/operator/sources', 'operator', 'List sources of signatures, with their age', {
    answer: operator.Sources,
  }),
  updateSource: post('/operator/sources/{name}/update', 'operator', 'Let a worker update a source now'),
  runSelfTest: post('/operator/self-test', 'operator', 'Scan known samples with every engine', {
    answer: operator.SelfTest,
  }),
  listEntries: get('/operator/lists', 'operator', 'List allow and block entries', {
    answer: operator.ListEntries,
  }),
  addListEntry: post('/operator/lists', 'operator', 'Allow or block a hash or signal', {
    body: operator.AddListEntry,
    answer: operator.ListEntry,
  }),
  removeListEntry: remove('/operator/lists/{id}', 'operator', 'Remove an allow or block entry'),
  listAudit: get('/operator/audit', 'operator', 'List audit log entries, newest first', {
    query: operator.AuditFilter,
    answer: operator.AuditPage,
  }),
  getSystem: get('/operator/system', 'operator', 'Show version and settings with their origin', {
    answer: operator.System,
  }),
  makeBackup: post('/operator/backup', 'operator', 'Write a backup below the data directory', {
    answer: operator.BackupDone,
  }),
  ...operatorAlertRoutes,
  ...operatorDownloadRoutes,
  ...operatorKnowledgeRoutes,
}
