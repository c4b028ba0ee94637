import { resolve } from 'node:path';
import { assertStateFolder } from '../../standalone/state-folder.ts';
import type { CliIo } from '../io.ts';

/** The absolute path of an existing state folder. Throws TEMPER_STATE_NOT_FOUND or TEMPER_STATE_UNUSABLE. */
export async function stateFolder(io: CliIo, state: string): Promise<string> {
  const folder = resolve(io.cwd, state);
  await assertStateFolder(folder);
  return folder;
}
