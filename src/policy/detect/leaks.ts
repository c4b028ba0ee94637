import { eachRun, isDigit, isWord } from './characters.ts';
import type { ArgumentText } from './texts.ts';

/** This many e-mail addresses in one call count as a leak. */
const MIN_ADDRESSES = 10;

/** A description of the personal data found in the texts; never the data itself. Undefined when there is none. */
export function findLeak(texts: readonly ArgumentText[]): string | undefined {
  let addresses = 0;
  for (const { text } of texts) {
    const number = findNumber(text);
    if (number !== undefined) return number;
    addresses += countAddresses(text);
    if (addresses >= MIN_ADDRESSES) return 'a list of e-mail addresses';
  }
  return undefined;
}

function countAddresses(text: string): number {
  let count = 0;
  for (let at = text.indexOf('@', 1); at >= 0; at = text.indexOf('@', at + 1)) {
    if (isWord(text.charCodeAt(at - 1)) && isWord(text.charCodeAt(at + 1))) count += 1;
  }
  return count;
}

function findNumber(text: string): string | undefined {
  let found: string | undefined;
  eachRun(text, isNumberCharacter, 11, (run) => {
    found = numberKind(run.split(/[ -]/));
    return found !== undefined;
  });
  return found;
}

function isNumberCharacter(code: number): boolean {
  return isDigit(code) || code === 0x20 || code === 0x2d;
}

function numberKind(groups: readonly string[]): string | undefined {
  for (let index = 0; index < groups.length; index += 1) {
    const lengths = groups.slice(index, index + 4).map((group) => group.length);
    if (lengths[0] === 3 && lengths[1] === 2 && lengths[2] === 4) return 'a social security number';
    if (cardLengths(lengths).some((count) => isCard(groups.slice(index, index + count).join('')))) {
      return 'a payment card number';
    }
  }
  return undefined;
}

/** How many groups, from the first on, could form one card number: one group, four groups of four digits, or 4-6-5. */
function cardLengths([first, second, third, fourth]: readonly number[]): number[] {
  if (first === 15 || first === 16) return [1];
  if (first !== 4) return [];
  if (second === 4 && third === 4 && fourth === 4) return [4];
  return second === 6 && third === 5 ? [3] : [];
}

/** Checks the first digit against the card networks, and the check digit of ISO/IEC 7812. */
function isCard(digits: string): boolean {
  if (!'3456'.includes(digits[0] ?? '?')) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - 0x30;
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
