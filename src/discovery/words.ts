/** What of a text is read: longer ones are descriptions nobody could be shown. */
const MOST_CHARACTERS = 2_048;
const MOST_WORDS = 256;
const LONGEST_WORD = 40;

/** Words that say nothing about what a tool does. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  'a an and are as at be by can do each every for from give has have how i in into is it its me my of on one or so some than that the their them there these they this to use used want was we what when which with you your'.split(
    ' ',
  ),
);

type Sort = 'lower' | 'upper' | 'digit' | 'sign' | 'none';

/**
 * The words of a text, in order, in lower case and without the ending of a plural. `csvRows`, `csv_rows` and `CSV rows` have the
 * same words; each sign of a script written without spaces is one. Linear in the text, whatever is in it.
 */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  let word = '';
  let before: Sort = 'none';
  const end = (): void => {
    const found = stemOf(word.toLowerCase());
    word = '';
    if (found !== '' && !STOP_WORDS.has(found)) words.push(found);
  };
  // Compatibility forms may be many times longer than what they stand for, so the text is cut before and after.
  const read = text.slice(0, MOST_CHARACTERS).normalize('NFKC').slice(0, MOST_CHARACTERS);
  for (const character of read) {
    const sort = sortOf(character);
    if (begins(sort, before)) end();
    if (words.length >= MOST_WORDS) return words;
    if (sort !== 'none' && word.length < LONGEST_WORD) word += character;
    before = sort;
  }
  end();
  return words;
}

function begins(sort: Sort, before: Sort): boolean {
  if (sort === 'none' || sort === 'sign' || before === 'sign') return true;
  return (sort === 'upper' && before === 'lower') || (sort === 'digit') !== (before === 'digit');
}

function sortOf(character: string): Sort {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x61 && code <= 0x7a) return 'lower';
  if (code >= 0x41 && code <= 0x5a) return 'upper';
  if (code >= 0x30 && code <= 0x39) return 'digit';
  if (code < 0x80) return 'none';
  if (/\p{N}/u.test(character)) return 'digit';
  if (!/[\p{L}\p{M}]/u.test(character)) return 'none';
  if (/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}]/u.test(character)) return 'sign';
  return /\p{Lu}/u.test(character) ? 'upper' : 'lower';
}

function stemOf(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  if (word.length < 4 || !word.endsWith('s') || word.endsWith('ss') || word.endsWith('us') || word.endsWith('is')) {
    return word;
  }
  return word.slice(0, -1);
}
