import { rm, writeFile } from 'node:fs/promises';
import type { Logger } from '../telemetry/log.ts';

/** The readiness probe checks that this file exists. */
export async function markReady(file: string, ready: boolean, log: Logger): Promise<void> {
  try {
    if (ready) await writeFile(file, '', { mode: 0o640 });
    else await rm(file, { force: true });
    log.info({ ready }, 'readiness');
  } catch (error) {
    log.error({ error }, 'cannot write the readiness file');
  }
}
