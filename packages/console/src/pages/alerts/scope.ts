import { type AlertTopic, accountTopics, type ChannelKind, operatorTopics } from '@assay/contract/admin'

/** Alerts are about the whole installation, for operators, or about an account, for its owners. */
export type Scope = 'operator' | 'account'

/** The routes of each scope have the same forms and answers. */
export const routes = {
  operator: {
    read: 'getAlerts',
    add: 'addAlertChannel',
    update: 'updateAlertChannel',
    remove: 'removeAlertChannel',
    test: 'testAlertChannel',
  },
  account: {
    read: 'getAccountAlerts',
    add: 'addAccountAlertChannel',
    update: 'updateAccountAlertChannel',
    remove: 'removeAccountAlertChannel',
    test: 'testAccountAlertChannel',
  },
} as const

export const topics: Record<Scope, readonly AlertTopic[]> = { operator: operatorTopics, account: accountTopics }

export const topicNames: Record<AlertTopic, string> = {
  signatures: 'Signatures are missing, old or not updated',
  engine: 'An engine or all workers are down',
  disk: 'The disk is nearly full',
  webhooks: 'Webhooks fail for good',
  credits: 'Credits are used by 80 % and by 100 %',
  threats: 'Many threats within an hour',
}

export const shortTopicNames: Record<AlertTopic, string> = {
  signatures: 'signatures',
  engine: 'engines',
  disk: 'disk',
  webhooks: 'webhooks',
  credits: 'credits',
  threats: 'threats',
}

export const kindNames: Record<ChannelKind, string> = {
  email: 'Email',
  webhook: 'Signed webhook',
  slack: 'Slack',
  teams: 'Microsoft Teams',
}
