import type { AlertTopic, ChannelKind } from '@assay/contract/admin'
import type { NodeStatus } from './operations.ts'

/** A place that alerts are sent to: of an account, or of the operators if `accountId` is null. */
export type AlertChannel = {
  id: string
  accountId: string | null
  kind: ChannelKind
  /** Email address or URL. */
  target: string
  /** Signs the webhooks of operators. Webhooks of accounts are signed with the secret of the account. */
  secret: string | null
  topics: AlertTopic[]
  /** Threats within an hour from which the topic `threats` is told. */
  threatsPerHour: number
}

export type StoredChannel = Omit<AlertChannel, 'target'> & {
  /** Null if the address does not open with the master key: the channel can only be changed or removed. */
  target: string | null
  createdAt: Date
  sentAt: Date | null
  failure: string | null
}

/** A condition that a channel wants to hear of. */
export type AlertCondition = {
  channelId: string
  topic: AlertTopic
  /** Identifies the condition among those of the channel. */
  subject: string
  text: string
  /** The node that the condition is about; null for other conditions. */
  nodeName: string | null
  /** How long the condition must hold before it is told, and be absent before its end is told. */
  holdMs: number
}

/** State of the installation from which conditions are found. */
export type AlertFacts = {
  nodes: Pick<NodeStatus, 'name' | 'isAlive' | 'faults'>[]
  /** Balances of accounts that have a channel for credits. */
  credits: { accountId: string; accountName: string; limit: number; remaining: number; periodEnd: Date }[]
  /** Hosts to which webhooks failed for good, and none arrived since. */
  deadReceivers: { accountId: string; accountName: string; host: string; since: Date }[]
  /**
   * Threats within the last hour: of accounts that have a channel for threats, and with null of all accounts. The count
   * is null if it took too long.
   */
  threats: { accountId: string | null; count: number | null }[]
  /** Whether the condition holds since an earlier look. */
  isOpen(channelId: string, subject: string): boolean
}

export type AlertMessage = {
  id: string
  state: 'firing' | 'resolved' | 'test'
  topic: AlertTopic | null
  text: string
  since: Date
}

export type ClaimedAlert = { token: string; attempts: number; channel: AlertChannel; message: AlertMessage }

export type AlertStore = {
  listChannels(accountId: string | null): Promise<StoredChannel[]>
  addChannel(channel: AlertChannel, createdBy: string): Promise<void>
  /** Forgets open alerts of topics that are not chosen any more. Returns false when there is no such channel. */
  updateChannel(
    accountId: string | null,
    id: string,
    /** Without a limit, that of the channel stays. */
    changes: { topics: AlertTopic[]; threatsPerHour: number | undefined },
  ): Promise<boolean>
  removeChannel(accountId: string | null, id: string): Promise<boolean>
  /** Conditions that were told to channels of this owner and hold now, oldest first. */
  listOpen(accountId: string | null): Promise<{ topic: AlertTopic; text: string; since: Date }[]>
  /** Whether a member of the account has this email address. */
  isMemberEmail(accountId: string, email: string): Promise<boolean>
  /**
   * Reads the facts and queues a message for each condition that began or ended. One process does this at a time;
   * another one returns at once, as does one that comes earlier than `minAgeMs` after the last look of any process.
   * Without channels, nothing is read.
   */
  update(find: (channels: AlertChannel[], facts: AlertFacts) => AlertCondition[], minAgeMs: number): Promise<void>
  claim(limit: number, leaseMs: number): Promise<ClaimedAlert[]>
  /** Deletes messages that could not be sent within a day. */
  deleteOldMessages(): Promise<number>
  /** Records the attempt of the newest claim. Without a pause, no attempt follows. */
  recordAttempt(claimed: ClaimedAlert, result: { failure: string | null; pauseMs: number | undefined }): Promise<void>
}

export type MailSender = {
  /** Returns the reason why the mail server did not take the mail, or undefined. */
  send(mail: { to: string; subject: string; text: string }): Promise<string | undefined>
}
