export type MailSender = {
  /** Returns the reason why the mail server did not take the mail, or undefined. */
  send(mail: { to: string; subject: string; text: string }): Promise<string | undefined>
}
