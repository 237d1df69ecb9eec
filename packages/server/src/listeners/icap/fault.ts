/** What is wrong with a request, for those who can be told. Nothing after it can be understood, or should be. */
export class IcapFault extends Error {
  readonly status: IcapStatus

  constructor(status: IcapStatus, sentence: string) {
    super(sentence)
    this.status = status
  }
}

export const reasons = {
  100: 'Continue',
  200: 'OK',
  204: 'No Content',
  400: 'Bad Request',
  404: 'Service Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  500: 'Server Error',
  503: 'Service Overloaded',
  505: 'ICAP Version Not Supported',
} as const

export type IcapStatus = keyof typeof reasons
