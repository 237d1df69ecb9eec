/** Samples have this mark inside their significant words, so that scanners do not report the files of this repository. */
export const whole = (text: string): string => text.replaceAll('¦', '')

export const eicar = whole('X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STAN¦DARD-ANTIVIRUS-TEST-FI¦LE!$H+H*')

/** A long text that is the same in every run. */
export const prose = (bytes: number): string =>
  'The reader learns here how such an attack looks. '.repeat(Math.ceil(bytes / 49))
