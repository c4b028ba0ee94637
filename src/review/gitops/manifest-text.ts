import { Document, isScalar, type Scalar, visit } from 'yaml';
import { isUnprintable } from '../../lib/printable.ts';
import type { JsonObject } from '../../lib/json.ts';

/** Lines of printable ASCII that neither begin nor end with a blank, and that contain no blank beyond ordinary spaces. */
const PLAIN_LINES = /^(?:[!-~](?:[ -~]*[!-~])?\n)(?: *[!-~](?:[ -~]*[!-~])?\n|\n)*$/;

/**
 * A manifest as YAML that every version of the language reads alike: kubectl reads YAML 1.1, in which an unquoted `yes` or `12:30` is not
 * a text. All texts are quoted, but for those of plain lines, which become blocks that a reader can compare line by line.
 */
export function manifestText(object: JsonObject): string {
  const document = new Document(object, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (key, scalar) => {
      if (key === 'value' || typeof key === 'number') quote(scalar);
    },
  });
  return escaped(document.toString({ lineWidth: 0, defaultKeyType: 'PLAIN', doubleQuotedAsJSON: true }));
}

function quote(scalar: Scalar): void {
  if (!isScalar(scalar) || typeof scalar.value !== 'string') return;
  const { value } = scalar;
  scalar.type = value.includes('\n') && isPlain(value) ? 'BLOCK_LITERAL' : 'QUOTE_DOUBLE';
}

function isPlain(text: string): boolean {
  return PLAIN_LINES.test(text);
}

/** Unprintable characters are only in quoted texts. YAML has no pairs of surrogates: it reads each escape as one character. */
function escaped(text: string): string {
  let out = '';
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    out += character !== '\n' && isUnprintable(code) ? escapeOf(code) : character;
  }
  return out;
}

function escapeOf(code: number): string {
  const digits = code.toString(16);
  return code > 0xffff ? `\\U${digits.padStart(8, '0')}` : `\\u${digits.padStart(4, '0')}`;
}
