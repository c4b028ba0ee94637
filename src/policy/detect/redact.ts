import { eachRun } from './characters.ts';
import {
  beginsPrivateKey,
  isSecretName,
  isTokenCharacter,
  MAX_AUTHORITY,
  MIN_TOKEN,
  tokenKind,
} from './credentials.ts';

interface Span {
  start: number;
  end: number;
  kind: string;
}

export interface RedactedText {
  text: string;
  /** The number of credentials that were replaced. */
  count: number;
}

/** The text with a marker in place of each credential that the detector would find. Linear in the text. */
export function redactCredentials(name: string, text: string): RedactedText {
  if (isSecretName(name, text)) return { text: '[redacted: a secret]', count: 1 };
  const spans = [...tokens(text), ...privateKeys(text), ...urlPasswords(text), ...authorizations(text)];
  if (spans.length === 0) return { text, count: 0 };
  spans.sort((a, b) => a.start - b.start || b.end - a.end);
  const parts: string[] = [];
  let end = 0;
  let count = 0;
  for (const span of spans) {
    if (span.start < end) {
      end = Math.max(end, span.end);
      continue;
    }
    parts.push(text.slice(end, span.start), `[redacted: ${span.kind}]`);
    ({ end } = span);
    count += 1;
  }
  return { text: [...parts, text.slice(end)].join(''), count };
}

function tokens(text: string): Span[] {
  const found: Span[] = [];
  eachRun(text, isTokenCharacter, MIN_TOKEN, (run, start) => {
    const kind = tokenKind(run);
    if (kind !== undefined) found.push({ start, end: start + run.length, kind });
    return false;
  });
  return found;
}

const BEGIN = '-----BEGIN ';
const END = '-----END ';

/** Up to the end of the key, or of a text that is cut in the middle of it. */
function privateKeys(text: string): Span[] {
  const found: Span[] = [];
  for (let at = text.indexOf(BEGIN); at >= 0; ) {
    if (!beginsPrivateKey(text, at)) {
      at = text.indexOf(BEGIN, at + BEGIN.length);
      continue;
    }
    const last = text.indexOf(END, at);
    const closed = last === -1 ? -1 : text.indexOf('-----', last + END.length);
    const end = closed === -1 ? text.length : closed + 5;
    found.push({ start: at, end, kind: 'a private key' });
    at = text.indexOf(BEGIN, end);
  }
  return found;
}

function urlPasswords(text: string): Span[] {
  const found: Span[] = [];
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 3)) {
    const authority = text.slice(at + 3, at + 3 + MAX_AUTHORITY).split(/[/?#\s"']/, 1)[0] ?? '';
    const end = authority.lastIndexOf('@');
    const colon = authority.indexOf(':');
    if (colon >= 0 && colon + 1 < end)
      found.push({ start: at + 3 + colon + 1, end: at + 3 + end, kind: 'a password in a URL' });
  }
  return found;
}

function authorizations(text: string): Span[] {
  const found: Span[] = [];
  for (const scheme of ['Bearer ', 'Basic ']) {
    for (let at = text.indexOf(scheme); at >= 0; at = text.indexOf(scheme, at + scheme.length)) {
      const start = at + scheme.length;
      let end = start;
      while (end < text.length && isCredentialCharacter(text, end)) end += 1;
      if (end - start >= MIN_TOKEN) found.push({ start, end, kind: 'an authorization header' });
      at = Math.max(at, end - scheme.length);
    }
  }
  return found;
}

function isCredentialCharacter(text: string, index: number): boolean {
  return isTokenCharacter(text.charCodeAt(index)) || '+/=~'.includes(text[index] ?? ' ');
}
