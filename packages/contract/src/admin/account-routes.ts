import * as account from './account.ts'
import { get, post, remove } from './route.ts'
import * as scanning from './scanning.ts'
import * as session from './session.ts'

/** What those who hold an account see and do. */
export const accountRoutes = {
  getOverview: get('/overview', 'account', 'Credits, scans and webhooks at a glance', { answer: scanning.Overview }),
  listScans: get('/scans', 'account', 'Scans, newest first', { query: scanning.ScanFilter, answer: scanning.ScanPage }),
  exportScans: get('/scans.csv', 'account', 'The same as CSV, all of them', { query: scanning.ScanFilter }),
  getScan: get('/scans/{id}', 'account', 'One scan and what happened to it', { answer: scanning.ScanDetail }),
  getUsage: get('/usage', 'account', 'Scans by day, kind and key, and refusals', { answer: scanning.Usage }),
  listKeys: get('/keys', 'account', 'API keys', { answer: account.Keys }),
  createKey: post('/keys', 'account', 'Create an API key; it is shown once', {
    body: account.CreateKey,
    answer: account.NewKey,
  }),
  rotateKey: post('/keys/{id}/rotate', 'account', 'Replace a key; the old one works a while longer', {
    body: account.RotateKey,
    answer: account.NewKey,
  }),
  revokeKey: post('/keys/{id}/revoke', 'account', 'Revoke a key for good', { body: account.RevokeKey }),
  getWebhooks: get('/webhooks', 'account', 'Webhook secret and receivers', { answer: account.Webhooks }),
  revealWebhookSecret: post('/webhooks/secret/reveal', 'account', 'Show the webhook secret', {
    answer: account.WebhookSecret,
  }),
  rotateWebhookSecret: post(
    '/webhooks/secret/rotate',
    'account',
    'New webhook secret; the old one signs along for a day',
    { answer: account.WebhookSecret },
  ),
  testWebhook: post('/webhooks/test', 'account', 'Send a signed sample', {
    body: account.TestWebhook,
    answer: account.TestedWebhook,
  }),
  listDeliveries: get('/deliveries', 'account', 'Webhook deliveries, newest first', {
    query: account.DeliveryFilter,
    answer: account.DeliveryPage,
  }),
  getDelivery: get('/deliveries/{id}', 'account', 'One delivery with its attempts', { answer: account.DeliveryDetail }),
  replayDelivery: post('/deliveries/{id}/replay', 'account', 'Send one again'),
  replayFailed: post('/deliveries/replay-failed', 'account', 'Send again all that failed since a time', {
    body: account.ReplaySince,
    answer: account.Replayed,
  }),
  getAccount: get('/account', 'account', 'Plan and limits', { answer: account.AccountView }),
  listMembers: get('/members', 'account', 'Who holds this account', { answer: session.Members }),
  inviteMember: post('/members', 'owner', 'Invite somebody by a link', {
    body: session.Invite,
    answer: session.Invitation,
  }),
  removeMember: remove('/members/{id}', 'owner', 'Remove a member or an invitation'),
}
