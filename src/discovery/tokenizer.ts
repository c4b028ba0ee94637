/** Only the beginning of a text is indexed; a longer description is never shown in full. */
const MAX_CHARACTERS = 2_048;
const MAX_WORDS = 256;
const MAX_WORD = 40;

/** Words without meaning for a search. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  'a an and are as at be by can do each every for from give has have how i in into is it its me my of on one or so some than that the their them there these they this to use used want was we what when which with you your'.split(
    ' ',
  ),
);

type CharacterClass = 'lower' | 'upper' | 'digit' | 'sign' | 'none';

/**
 * The words of a text in order, in lower case and without plural endings. `csvRows`, `csv_rows` and `CSV rows` have the
 * same words; in a script without spaces each character is a word. Takes linear time for any text.
 */
export function tokenize(text: string): string[] {
  const words: string[] = [];
  let word = '';
  let previous: CharacterClass = 'none';
  const end = (): void => {
    const found = stemOf(word.toLowerCase());
    word = '';
    if (found !== '' && !STOP_WORDS.has(found)) words.push(found);
  };
  // Normalisation can make the text many times longer, so it is cut before and after.
  const read = text.slice(0, MAX_CHARACTERS).normalize('NFKC').slice(0, MAX_CHARACTERS);
  for (const character of read) {
    const kind = classOf(character);
    if (startsWord(kind, previous)) end();
    if (words.length >= MAX_WORDS) return words;
    if (kind !== 'none' && word.length < MAX_WORD) word += character;
    previous = kind;
  }
  end();
  return words;
}

function startsWord(kind: CharacterClass, previous: CharacterClass): boolean {
  if (kind === 'none' || kind === 'sign' || previous === 'sign') return true;
  return (kind === 'upper' && previous === 'lower') || (kind === 'digit') !== (previous === 'digit');
}

function classOf(character: string): CharacterClass {
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
