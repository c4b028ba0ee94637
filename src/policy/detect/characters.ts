/** Character classes by code unit, so that scanners need no regular expressions. */

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

export function isWord(code: number): boolean {
  return isLetter(code) || isDigit(code) || code === 0x5f;
}

/** Calls `visit` for each maximal run of at least `minLength` characters of the class; stops when `visit` returns true. Linear in the text. */
export function eachRun(
  text: string,
  isMember: (code: number) => boolean,
  minLength: number,
  visit: (run: string, start: number) => boolean,
): void {
  let start = 0;
  for (let index = 0; index <= text.length; index += 1) {
    if (index < text.length && isMember(text.charCodeAt(index))) continue;
    if (index - start >= minLength && visit(text.slice(start, index), start)) return;
    start = index + 1;
  }
}
