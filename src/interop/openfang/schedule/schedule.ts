import type { FieldPath } from '../../../api/findings.ts';
import type { AgentSpec } from '../../../api/v1alpha1/agent.ts';
import type { JsonObject } from '../../../lib/json.ts';
import type { ImportLog } from '../keys/import-log.ts';
import { importTriggers } from './triggers.ts';
import { integerAt, textAt, valueAt } from '../source/source-values.ts';

type Schedule = NonNullable<AgentSpec['schedule']>;

const MIN_SECONDS = 60;
const MAX_SECONDS = 86_400;
/** OpenFang sends a text of its own to an agent whose time has come. */
const MESSAGE = 'Your scheduled run at {{time}} has come. Look at what you have to do, and do what is due.';
const MODES: readonly string[] = ['reactive', 'continuous', 'periodic', 'proactive'];

/** The schedule, in the form of OpenFang's program (`periodic = {cron}`) or of its documentation (`mode`, `cron`). */
export function importSchedule(source: JsonObject, log: ImportLog): Schedule | undefined {
  const mode = importMode(source, log);
  const interval = importInterval(source, ['schedule', 'continuous', 'check_interval_secs'], log);
  if (interval !== undefined || valueAt(source, ['schedule', 'continuous']) !== undefined)
    return continuous(interval ?? `${MIN_SECONDS}s`);
  const cron = importCron(source, ['schedule', 'periodic', 'cron'], log);
  if (cron !== undefined) return { mode: 'Periodic', cron, message: MESSAGE };
  if (mode === 'continuous')
    return continuous(importInterval(source, ['schedule', 'interval_seconds'], log) ?? `${MIN_SECONDS}s`);
  if (mode !== 'periodic') return proactive(mode, source, log);
  const documented = importCron(source, ['schedule', 'cron'], log);
  return documented === undefined ? undefined : { mode: 'Periodic', cron: documented, message: MESSAGE };
}

function proactive(mode: string | undefined, source: JsonObject, log: ImportLog): Schedule | undefined {
  if (mode !== 'proactive' && valueAt(source, ['schedule', 'proactive']) === undefined) return undefined;
  const triggers = importTriggers(source, log);
  const isImported = triggers.length > 0;
  if (mode !== undefined) {
    if (isImported) log.imported(modePath(source), mode, 'spec.schedule.mode');
    else log.add(modePath(source), 'NotImported', { value: mode, note: 'no event of the file starts the agent here' });
  }
  return isImported ? { mode: 'Proactive', triggers } : undefined;
}

function continuous(interval: string): Schedule {
  return { mode: 'Continuous', interval, message: MESSAGE };
}

function modePath(source: JsonObject): FieldPath {
  return typeof source['schedule'] === 'string' ? ['schedule'] : ['schedule', 'mode'];
}

/** The mode stands in the table or in place of it. That of triggers is logged with them. */
function importMode(source: JsonObject, log: ImportLog): string | undefined {
  const path = modePath(source);
  const mode = typeof valueAt(source, path) === 'string' ? textAt(source, path, log) : undefined;
  if (mode === undefined) return undefined;
  if (!MODES.includes(mode)) log.invalid(path, mode, MODES.join(', '));
  else if (mode !== 'proactive')
    log.imported(path, mode, 'spec.schedule.mode', mode === 'reactive' ? 'the default' : undefined);
  return mode;
}

function importInterval(source: JsonObject, path: FieldPath, log: ImportLog): string | undefined {
  const seconds = integerAt(source, path, log);
  if (seconds === undefined) return undefined;
  const within = Math.min(MAX_SECONDS, Math.max(MIN_SECONDS, seconds));
  const note = within === seconds ? {} : { note: `an interval has ${MIN_SECONDS} to ${MAX_SECONDS} seconds` };
  const result = within === seconds ? 'Imported' : 'Changed';
  log.add(path, result, { value: seconds, field: 'spec.schedule.interval', ...note });
  return `${within}s`;
}

function importCron(source: JsonObject, path: FieldPath, log: ImportLog): string | undefined {
  const cron = textAt(source, path, log)?.trim();
  if (cron === undefined) return undefined;
  log.imported(
    path,
    cron,
    'spec.schedule.cron',
    'OpenFang runs most expressions every 5 minutes; here they are due at their times',
  );
  return cron;
}
