/** A character of BinHex, as the source of an expression. A colon at the start of a line stands in front of the data. */
export const binHexChar = '[!-,\\-0-689@A-NP-VX-Z[`a-fh-mp-r]'
