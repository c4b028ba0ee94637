import { parse, type Token, tokTypes } from 'acorn';
import type { SpanKind } from './document.ts';

/** A highlighted range of a source, in UTF-16 units. */
export interface SourceToken {
  readonly kind: SpanKind;
  readonly start: number;
  readonly end: number;
}

const MAX_CHARACTERS = 65_536;

/** The ranges of a JavaScript source to highlight, in order. A source that does not parse, or is too long, has none. */
export function sourceTokens(source: string): SourceToken[] {
  if (source.length > MAX_CHARACTERS) return [];
  const found: SourceToken[] = [];
  const onToken = (token: Token): void => {
    const kind = kindOf(token);
    if (kind !== undefined) found.push({ kind, start: token.start, end: token.end });
  };
  const onComment = (_block: boolean, _text: string, start: number, end: number): void => {
    found.push({ kind: 'comment', start, end });
  };
  try {
    parse(source, { ecmaVersion: 'latest', sourceType: 'script', onToken, onComment });
  } catch (error) {
    // The parser recurses, so a deeply nested source exhausts the stack.
    if (error instanceof SyntaxError || error instanceof RangeError) return [];
    throw error;
  }
  return found.sort((one, other) => one.start - other.start);
}

function kindOf({ type }: Token): SpanKind | undefined {
  if (type.keyword !== undefined) return 'keyword';
  if (type === tokTypes.num) return 'number';
  const texts = [tokTypes.string, tokTypes.template, tokTypes.backQuote, tokTypes.regexp];
  return texts.includes(type) ? 'string' : undefined;
}
