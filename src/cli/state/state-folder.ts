import { resolve } from 'node:path';
import { assertStateFolder } from '../../standalone/state-folder.ts';
import { assertPlainFiles } from '../../standalone/trust/private-folder.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { CliIo } from '../io.ts';

/** The absolute path of an existing state folder. Throws TEMPER_STATE_NOT_FOUND, TEMPER_STATE_UNUSABLE, or TEMPER_STATE_UNTRUSTED when it has links. */
export async function stateFolder(io: CliIo, state: string): Promise<string> {
  const folder = resolve(io.cwd, state);
  await assertStateFolder(folder);
  assertPlainFiles(folder);
  return folder;
}

/**
 * Runs a verb over documents that any program may have written. A document that breaks the assumptions of the verb, such as a name that leads
 * out of its folder or nesting beyond the stack, is a fault of the folder: throws TEMPER_STATE_CORRUPT.
 */
export async function readingState(state: string, verb: () => Promise<number>): Promise<number> {
  try {
    return await verb();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw new TemperError(
      'TEMPER_STATE_CORRUPT',
      `a document in ${printable(state, 400)} has another form than Temper writes (${messageOf(error, 200)}); move it away, or use another --state`,
      { cause: error },
    );
  }
}
