import { resolve } from 'node:path';
import { assertStateFolder } from '../../standalone/state-folder.ts';
import { assertPlainFiles } from '../../standalone/trust/private-folder.ts';
import type { CliIo } from '../io.ts';

/** The absolute path of an existing state folder. Throws TEMPER_STATE_NOT_FOUND, TEMPER_STATE_UNUSABLE, or TEMPER_STATE_UNTRUSTED when it has links. */
export async function stateFolder(io: CliIo, state: string): Promise<string> {
  const folder = resolve(io.cwd, state);
  await assertStateFolder(folder);
  assertPlainFiles(folder);
  return folder;
}
