import { sha256 } from '../../lib/canonical.ts';

const MAX_PREFIX = 32;
const MAX_SHORT_NAME = 18;
const HASH_CHARACTERS = 10;

/**
 * The name of a child: it starts with the name of its parent, so an agent cannot take a name that others trust, and ends with a digest of
 * the request, so that a repeated request names the same child. At most 62 characters.
 */
export function childName(parent: string, name: string, request: string): string {
  const digest = sha256(`${parent}\n${name}\n${request}`).slice('sha256:'.length);
  return `${childPrefix(parent)}${trimmed(name, MAX_SHORT_NAME)}-${digest.slice(0, HASH_CHARACTERS)}`;
}

/** What the names of all children of an agent start with. */
export function childPrefix(parent: string): string {
  return `${trimmed(parent, MAX_PREFIX)}-`;
}

function trimmed(text: string, length: number): string {
  return text.slice(0, length).replace(/-+$/, '');
}
