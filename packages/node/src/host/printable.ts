/** Text that came from a VMM or guest, made fit for a log: line ends stay, other control characters become `?`. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === '\n' ? character : '?'))
}
