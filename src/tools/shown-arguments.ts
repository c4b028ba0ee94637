import type { Json } from '../lib/json.ts';
import { printableDocument } from '../lib/printable.ts';
import { findCredential } from '../policy/detect/credentials.ts';

/** The same limit as `ApprovalRequest.spec.arguments`. */
const MAX_CHARACTERS = 16_384;
/** Ends of names, without punctuation, whose texts and members are not shown. */
const SECRET_NAMES = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'token',
  'tokens',
  'credential',
  'credentials',
  'authorization',
  'cookie',
  'cookies',
  'apikey',
  'secretkey',
  'accesskey',
  'privatekey',
];
/** Longer texts are cut, so that one of them does not hide the other arguments. */
const MAX_TEXT = 4_000;

/**
 * The arguments of a call as an approver reads them: JSON without secrets and without characters that control a terminal. A value whose
 * name or form is that of a credential is replaced, with the kind of the credential. What is cut states its whole length, and the secrets
 * are replaced before that, so no part of one remains. `redact` knows the secrets of this process.
 */
export function shownArguments(input: Json, redact: (text: string) => string): string {
  const text = JSON.stringify(input, (name, value: Json) => shownValue(name, value, redact));
  const clean = printableDocument(redact(text));
  return cut(clean, MAX_CHARACTERS);
}

function shownValue(name: string, value: Json, redact: (text: string) => string): Json {
  const isEmpty = value === null || value === '';
  if (hidesValue(name) && !isEmpty && !isFigure(name, value)) return '[redacted: a secret]';
  if (typeof value !== 'string') return value;
  const clean = redact(value);
  const kind = findCredential(name, clean);
  return kind === undefined ? cut(clean, MAX_TEXT) : `[redacted: ${kind}]`;
}

function hidesValue(name: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  return SECRET_NAMES.some((end) => plain.endsWith(end));
}

/** `maxTokens: 500` is no secret; a password of digits is one. */
function isFigure(name: string, value: Json): boolean {
  return typeof value === 'boolean' || (typeof value === 'number' && /token/i.test(name));
}

/** At most `limit` characters, of which the note about the length is a part. Never splits a character. */
function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const note = `… (${text.length} characters)`;
  const kept = text.slice(0, limit - note.length);
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}${note}`;
}
