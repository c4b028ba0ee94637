import { sha256 } from '../../../lib/canonical.ts';

const MAX_NAME = 63;
const HASH_LENGTH = 8;

/** The name of an Agent for a name of any form: lower-case letters, digits and dashes, at most 63. */
export function objectName(text: string): string {
  const plain = dashed(text, /[^a-z0-9]+/g);
  const hash = sha256(text).slice('sha256:'.length, 'sha256:'.length + HASH_LENGTH);
  if (plain === '') return `agent-${hash}`;
  return plain.length <= MAX_NAME ? plain : `${plain.slice(0, MAX_NAME - HASH_LENGTH - 1).replace(/-+$/, '')}-${hash}`;
}

/** The same for a pattern of names, whose stars stay. */
export function namePattern(text: string): string {
  return text.includes('*') ? dashed(text, /[^a-z0-9*]+/g) : objectName(text);
}

function dashed(text: string, others: RegExp): string {
  return text.toLowerCase().replaceAll(others, '-').replace(/^-/, '').replace(/-$/, '');
}
