import { stemmer } from 'stemmer';

/** Only the beginning of a text is indexed; a longer description is never shown in full. */
const MAX_CHARACTERS = 2_048;
const MAX_WORDS = 256;
const MAX_WORD = 40;

/** Words without meaning for a search, and the words with which users ask for something. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about after also am an and any are as at be been being but by can could do does each every for from get give has
   have how i if in into is it its just kindly let like may me more most must my need no not of on one only or other our
   out over please provide same should so some such tell than that the their them then there these they this through to
   too up use used via want was we were what when where which while who why will with would you your`.split(/\s+/),
);

type CharacterClass = 'lower' | 'upper' | 'digit' | 'sign' | 'none';

/**
 * The stems of the words of a text in order, in lower case. `csvRows`, `csv_rows` and `CSV rows` have the same words; in a script
 * without spaces each character is a word. Takes linear time for any text.
 */
export function tokenize(text: string, stem: (word: string) => string = stemOf): string[] {
  const words: string[] = [];
  let word = '';
  let capitals = 0;
  let previous: CharacterClass = 'none';
  const end = (): void => {
    const found = word.toLowerCase();
    word = '';
    capitals = 0;
    if (found !== '' && !STOP_WORDS.has(found)) words.push(stem(found));
  };
  // Normalisation can make the text many times longer, so it is cut before and after.
  const read = text.slice(0, MAX_CHARACTERS).normalize('NFKC').slice(0, MAX_CHARACTERS);
  for (const character of read) {
    const kind = classOf(character);
    if (startsWord(kind, previous)) end();
    else if (kind === 'lower' && capitals > 1 && word.length === capitals + 1) {
      // The last capital of `HTMLContent` begins a word. One letter after capitals, as in `URLs`, is a plural.
      const start = word.slice(-2);
      word = word.slice(0, -2);
      end();
      word = start;
    }
    if (words.length >= MAX_WORDS) return words;
    if (kind !== 'none' && word.length < MAX_WORD) word += character;
    if (kind === 'upper') capitals += 1;
    previous = kind;
  }
  end();
  return words;
}

/** The stem of a word in lower case. Only words of English letters have one; their length is bounded. */
export function stemOf(word: string): string {
  return /^[a-z]{3,40}$/.test(word) ? stemmer(word) : word;
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
