import * as alerts from './alerts.ts'
import { get, patch, post, remove } from './route.ts'

/** Routes for the alerts of operators. */
export const operatorAlertRoutes = {
  getAlerts: get('/operator/alerts', 'operator', 'Show the alerts about the installation and where they are sent', {
    answer: alerts.Alerts,
  }),
  addAlertChannel: post('/operator/alerts', 'operator', 'Add a place that alerts are sent to', {
    body: alerts.AddAlertChannel,
    answer: alerts.AddedAlertChannel,
  }),
  updateAlertChannel: patch('/operator/alerts/{id}', 'operator', 'Choose the topics of a channel', {
    body: alerts.UpdateAlertChannel,
  }),
  removeAlertChannel: remove('/operator/alerts/{id}', 'operator', 'Remove a channel'),
  testAlertChannel: post('/operator/alerts/{id}/test', 'operator', 'Send a test message to a channel', {
    answer: alerts.TestedAlertChannel,
  }),
}

/** Routes for the alerts of an account. */
export const accountAlertRoutes = {
  getAccountAlerts: get('/alerts', 'owner', 'Show the alerts about the account and where they are sent', {
    answer: alerts.Alerts,
  }),
  addAccountAlertChannel: post('/alerts', 'owner', 'Add a place that alerts of the account are sent to', {
    body: alerts.AddAlertChannel,
    answer: alerts.AddedAlertChannel,
  }),
  updateAccountAlertChannel: patch('/alerts/{id}', 'owner', 'Choose the topics of a channel of the account', {
    body: alerts.UpdateAlertChannel,
  }),
  removeAccountAlertChannel: remove('/alerts/{id}', 'owner', 'Remove a channel of the account'),
  testAccountAlertChannel: post('/alerts/{id}/test', 'owner', 'Send a test message to a channel of the account', {
    answer: alerts.TestedAlertChannel,
  }),
}
