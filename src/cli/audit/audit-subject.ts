import type { ChainedRecord } from '../../audit/port.ts';
import { TemperError } from '../../lib/errors.ts';
import { textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { SESSIONS } from '../../tools/session-path.ts';
import { listStateTools, matchesTool } from '../state/state-tools.ts';

const MAX_NAMES = 10;

/** The records of a tool or a session: a name, a digest or an id. */
export function recordsOf(all: readonly ChainedRecord[], wanted: string): ChainedRecord[] {
  return all.filter(({ subject, facts }) => [subject, facts['tool'], facts['session']].includes(wanted));
}

/** Names of the tools and ids of the sessions that the records concern. */
function subjectsOf(all: readonly ChainedRecord[]): { tools: string[]; sessions: string[] } {
  const named = (fact: string): string[] => {
    const values = all.map(({ facts }) => facts[fact]);
    return [...new Set(values.filter((value): value is string => typeof value === 'string' && value !== ''))];
  };
  return { tools: named('tool'), sessions: named('session') };
}

/**
 * Throws TEMPER_NOT_FOUND, with the names that the records concern, when the state folder has no tool and no session of this name: an intact
 * chain without a record of a mistyped name would look like a result.
 */
export async function assertSubject(
  all: readonly ChainedRecord[],
  subject: string,
  records: RecordStore,
): Promise<void> {
  const [tools, sessions] = await Promise.all([listStateTools(records), records.list(SESSIONS)]);
  if (tools.some((tool) => matchesTool(tool, subject))) return;
  if (sessions.some(({ value }) => textAt(value, ['session']) === subject)) return;
  const known = subjectsOf(all);
  const hint = [listed('tools', known.tools), listed('sessions', known.sessions)].filter((part) => part !== '');
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `the chain has no record of a tool or session "${printable(subject, 80)}"; ${hint.length === 0 ? 'it has records of none' : `it has records of ${hint.join(' and ')}`}`,
  );
}

function listed(kind: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > MAX_NAMES ? ', …' : '';
  return `${kind}: ${names
    .slice(0, MAX_NAMES)
    .map((name) => printable(name, 80))
    .join(', ')}${more}`;
}
