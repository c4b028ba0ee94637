import type { FieldPath } from '../../api/findings.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ImportLog } from './keys/import-log.ts';
import { valueAt } from './source/source-values.ts';

/** A reactive agent is every agent. The keys of the other modes are listed. */
export function importSchedule(source: JsonObject, log: ImportLog): void {
  const places: FieldPath[] = [['schedule'], ['schedule', 'mode']];
  for (const path of places) {
    const mode = valueAt(source, path);
    if (mode === 'reactive') log.imported(path, mode, 'spec', 'an agent runs when it receives a message');
  }
}
