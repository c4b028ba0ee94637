import { setImmediate } from 'node:timers/promises';
import { gitFailure } from '../../../git/failure.ts';
import { type FolderLimits, listBelow } from '../../../git/objects/list-tree.ts';
import { contentOf, rootOf, treeIn } from '../../../git/objects/read-objects.ts';
import { isRegularFile, type TreeEntry } from '../../../git/objects/tree.ts';
import type { PackLimits } from '../../../git/pack/pack-reader.ts';
import type { Clone } from '../../../git/remote.ts';
import { isUnprintable, printable } from '../../../lib/printable.ts';

const MEBIBYTE = 1_048_576;
/** Of the answer of the server. */
export const MAX_CLONE_BYTES = 32 * MEBIBYTE;
/** Of all objects of the history that the server sends. */
export const CLONE_LIMITS: PackLimits = { objects: 50_000, objectBytes: 16 * MEBIBYTE, totalBytes: 128 * MEBIBYTE };
/** Of the files of the one commit that is checked out: a file may be in a tree any number of times. */
export const CHECKOUT_LIMITS: CheckoutLimits = { entries: 20_000, depth: 30, bytes: 128 * MEBIBYTE, hidden: true };

export interface CheckoutLimits extends FolderLimits {
  /** Of all files together. */
  readonly bytes: number;
}

/** The files of a checkout. */
export interface CheckoutFiles {
  /** Relative to the repository. */
  paths: readonly string[];
  bytes: number;
}

const LINK_MODE = '120000';
const SUBMODULE_MODE = '160000';
const TURN_FILES = 1_000;

/**
 * What the checkout of a clone would write. Throws TEMPER_CONNECTION_FAILED for more than the limits, for names that a reader does not see,
 * and for entries that are neither files, links nor submodules.
 */
export async function checkoutOf(
  { objects, commit }: Pick<Clone, 'objects' | 'commit'>,
  limits: CheckoutLimits = CHECKOUT_LIMITS,
): Promise<CheckoutFiles> {
  const entries = listBelow((id) => treeIn(objects, id), rootOf(objects, commit), limits);
  const paths: string[] = [];
  let bytes = 0;
  for (const [name, entry] of entries) {
    if (paths.length % TURN_FILES === TURN_FILES - 1) await setImmediate();
    paths.push(readableName(name));
    if (entry.mode === SUBMODULE_MODE) continue;
    assertFile(name, entry);
    bytes += contentOf(objects, entry.id, 'blob').length;
    if (bytes > limits.bytes)
      throw gitFailure(`the files of the commit have more than ${limits.bytes} bytes; clone another repository`);
  }
  return { paths, bytes };
}

/** Git writes a link as a text file in the workspace. */
function assertFile(name: string, entry: TreeEntry): void {
  if (isRegularFile(entry) || entry.mode === LINK_MODE) return;
  throw gitFailure(`"${printable(name, 200)}" is neither a file nor a link`);
}

/** The client has names as bytes. */
function readableName(name: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(name, 'latin1'));
    if (!Array.from(text).some((character) => isUnprintable(character.codePointAt(0) ?? 0))) return text;
  } catch {
    // Refused below.
  }
  throw gitFailure(`"${printable(name, 200)}" is not a name that a reader can see as it is`);
}
