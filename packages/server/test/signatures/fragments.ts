/** Samples are written with this mark inside their telling words, so that the files of this repository are no findings themselves. */
export const whole = (text: string): string => text.replaceAll('¦', '')

export const eicar = whole('X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STAN¦DARD-ANTIVIRUS-TEST-FI¦LE!$H+H*')

/** Fixed words, so that a long text is the same in every run. */
export const prose = (bytes: number): string =>
  'The reader learns here how such an attack looks. '.repeat(Math.ceil(bytes / 49))
