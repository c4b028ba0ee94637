import { readFile } from 'node:fs/promises';
import { messageOf } from '../lib/errors.ts';

/** A secret for an HTTP header, or why the file contains none. The problem never contains a part of the file. */
export type SecretFile = { readonly secret: string } | { readonly problem: string };

/** Reads a file with one key or token. Read it at each use, so that a rotated secret is used at once. */
export async function readSecretFile(path: string): Promise<SecretFile> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    return { problem: `cannot be read: ${messageOf(error)}` };
  }
  return headerSecret(text);
}

/** Other characters cannot be sent in a header, and the error of the HTTP client would contain the secret. */
export function headerSecret(text: string): SecretFile {
  const secret = text.trim();
  if (secret === '') return { problem: 'is empty' };
  if (/^[!-~]+$/.test(secret)) return { secret };
  return {
    problem: 'contains a space, a line break or a character outside ASCII, which no key has; set it to the key alone',
  };
}
