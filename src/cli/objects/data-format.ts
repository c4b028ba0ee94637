import { type Pair, Document, isScalar, visit } from 'yaml';
import { printableDocument } from '../../lib/printable.ts';
import type { Json } from '../../lib/json.ts';

/** Indentation of JSON for users, as kubectl prints it. */
const JSON_INDENT = 4;

/** The value as indented JSON with a final newline. Control characters and bidirectional marks are escaped, so parsing gives the same value. */
export function toJsonText(value: Json): string {
  return `${printableDocument(JSON.stringify(value, null, JSON_INDENT))}\n`;
}

/** The value as YAML with a final newline, escaped as `toJsonText` is. */
export function toYamlText(value: Json): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, scalar) => {
      if (needsEscape(scalar.value)) scalar.type = 'QUOTE_DOUBLE';
    },
    Pair: (_, { key }: Pair) => {
      if (isScalar(key) && needsEscape(key.value)) key.type = 'QUOTE_DOUBLE';
    },
  });
  return printableDocument(document.toString({ lineWidth: 0 }));
}

function needsEscape(value: unknown): boolean {
  return typeof value === 'string' && printableDocument(value) !== value;
}
