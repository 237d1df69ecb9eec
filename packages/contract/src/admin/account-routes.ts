import { ScanResult } from '../schemas.ts'
import * as account from './account.ts'
import * as activity from './activity.ts'
import { accountAlertRoutes } from './alert-routes.ts'
import { accountDownloadRoutes } from './download-routes.ts'
import { accountKnowledgeRoutes } from './knowledge-routes.ts'
import { get, post, remove } from './route.ts'
import * as scanning from './scanning.ts'
import * as session from './session.ts'

/** Routes for owners and members of an account. */
export const accountRoutes = {
  getOverview: get('/overview', 'account', 'Summary of credits, scans and webhooks', { answer: scanning.Overview }),
  listScans: get('/scans', 'account', 'List scans, newest first', {
    query: scanning.ScanFilter,
    answer: scanning.ScanPage,
  }),
  getScan: get('/scans/{id}', 'account', 'Show one scan with its timeline', { answer: scanning.ScanDetail }),
  getReceipt: get('/scans/{id}/receipt', 'account', 'Show one completed scan with a signed receipt', {
    answer: ScanResult,
  }),
  getUsage: get('/usage', 'account', 'Count scans by day, kind and key, and rejected requests', {
    answer: scanning.Usage,
  }),
  getAccountActivity: get('/activity', 'account', 'Show scans, their times and webhooks of the last hour or day', {
    query: activity.ActivityQuery,
    answer: activity.AccountActivity,
  }),
  listKeys: get('/keys', 'account', 'List API keys', { answer: account.Keys }),
  createKey: post('/keys', 'account', 'Create an API key; the response is the only place that shows it', {
    body: account.CreateKey,
    answer: account.NewKey,
  }),
  rotateKey: post(
    '/keys/{id}/rotate',
    'account',
    'Replace an API key; the old one keeps working for a chosen overlap',
    {
      body: account.RotateKey,
      answer: account.NewKey,
    },
  ),
  restrictKey: post('/keys/{id}/restrict', 'account', 'Change what an API key may be used for, and from where', {
    body: account.KeyRestrictions,
    answer: account.KeyRow,
  }),
  revokeKey: post('/keys/{id}/revoke', 'account', 'Revoke an API key permanently', { body: account.RevokeKey }),
  getWebhooks: get('/webhooks', 'account', 'Show when the webhook secret was rotated, and the receivers', {
    answer: account.Webhooks,
  }),
  revealWebhookSecret: post('/webhooks/secret/reveal', 'account', 'Show the webhook secret', {
    answer: account.WebhookSecret,
  }),
  rotateWebhookSecret: post(
    '/webhooks/secret/rotate',
    'account',
    'Rotate the webhook secret; the old one also signs webhooks for 24 hours',
    { answer: account.WebhookSecret },
  ),
  testWebhook: post('/webhooks/test', 'account', 'Send a signed test webhook', {
    body: account.TestWebhook,
    answer: account.TestedWebhook,
  }),
  listDeliveries: get('/deliveries', 'account', 'List webhook deliveries, newest first', {
    query: account.DeliveryFilter,
    answer: account.DeliveryPage,
  }),
  getDelivery: get('/deliveries/{id}', 'account', 'Show one delivery with its attempts', {
    answer: account.DeliveryDetail,
  }),
  replayDelivery: post('/deliveries/{id}/replay', 'account', 'Send one delivery again'),
  replayFailed: post(
    '/deliveries/replay-failed',
    'account',
    'Send again all deliveries that failed since a given time',
    {
      body: account.ReplaySince,
      answer: account.Replayed,
    },
  ),
  getAccount: {
    ...get('/account', 'account', 'Show plan and limits', { answer: account.AccountView }),
    servesSuspended: true,
  },
  listNotices: get('/notices', 'owner', 'List accesses to the account that operators caused, until you confirm them', {
    answer: account.Notices,
  }),
  confirmNotices: post('/notices/confirm', 'owner', 'Confirm that you have read the notices', {
    body: account.ConfirmNotices,
  }),
  listMembers: get('/members', 'account', 'List members and open invitations', { answer: session.Members }),
  inviteMember: post('/members', 'owner', 'Create an invitation link', {
    body: session.Invite,
    answer: session.Invitation,
  }),
  removeMember: remove(
    '/members/{id}',
    'owner',
    'Remove a member or an invitation; the response lists the keys that the member created',
    { answer: account.RemovedMember },
  ),
  ...accountAlertRoutes,
  ...accountDownloadRoutes,
  ...accountKnowledgeRoutes,
}
