import type { AuditRecord } from '../../audit/port.ts';
import { isJsonObject, type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';

/** A record with its place in a verified chain. */
export interface LifeRecord extends Omit<AuditRecord, 'evidence'> {
  readonly seq: number;
  /** RFC 3339. */
  readonly time: string;
}

/** One event in the life of a tool. Calls in a row are one event. */
export interface LifeEvent {
  time: string;
  /** Numbers of the first and the last record. */
  from: number;
  to: number;
  action: string;
  actor: string;
  digest: string;
  text: string;
}

const CALLS: ReadonlySet<string> = new Set(['tool.called', 'tool.call-failed']);
const MAX_TEXT = 300;
/** Counts that the text of a record names, by its action. */
const COUNTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'tool.examined': {
    examinedInputs: 'inputs',
    checkCases: 'cases of checks',
    refusingDisagreements: 'refusing disagreements',
    openQuestions: 'open questions',
  },
  'tool.reports-contradicted': { tests: 'contradicted tests', uses: 'contradicted uses' },
};

/** Is the record about the tool with this name or digest? */
export function concerns({ subject, facts }: LifeRecord, tool: string): boolean {
  return subject === tool || facts['tool'] === tool;
}

/** The life of the tools with this name or digest, oldest first. */
export function toolLife(records: readonly LifeRecord[], tool: string): LifeEvent[] {
  const events: LifeEvent[] = [];
  let calls: LifeRecord[] = [];
  const endCalls = (): void => {
    if (calls.length > 0) events.push(eventOfCalls(calls));
    calls = [];
  };
  for (const record of records) {
    if (!concerns(record, tool)) continue;
    if (CALLS.has(record.action) && (calls[0] === undefined || calls[0].subject === record.subject)) calls.push(record);
    else if (CALLS.has(record.action)) {
      endCalls();
      calls.push(record);
    } else {
      endCalls();
      events.push(eventOf(record, textOf(record)));
    }
  }
  endCalls();
  return events;
}

function eventOfCalls(calls: readonly LifeRecord[]): LifeEvent {
  const [first, last] = [calls[0] as LifeRecord, calls.at(-1) as LifeRecord];
  const failed = calls.filter(({ action }) => action === 'tool.call-failed').length;
  const text = `${calls.length} calls, ${failed} failed, until ${last.time}`;
  return { ...eventOf(first, text), to: last.seq, action: 'tool.called' };
}

function eventOf({ seq, time, action, actor, subject }: LifeRecord, text: string): LifeEvent {
  return {
    time,
    from: seq,
    to: seq,
    action,
    actor: printable(actor, 120),
    digest: printable(subject, 80),
    text: printable(text, MAX_TEXT),
  };
}

function textOf({ action, facts }: LifeRecord): string {
  const parts = [textAt(facts, 'tier'), textAt(facts, 'reason'), textAt(facts, 'decision'), textAt(facts, 'message')];
  parts.push(...countsOf(action, facts));
  const verdicts = member(facts, 'verdicts');
  if (Array.isArray(verdicts)) parts.push(...verdicts.map(verdictText));
  const revision = textAt(facts, 'policyRevision');
  if (revision !== '') parts.push(`policy ${shortDigest(revision)}`);
  const shown = parts.filter((part) => part !== '');
  return shown.length === 0 ? action : shown.join(', ');
}

function countsOf(action: string, facts: Json): string[] {
  return Object.entries(COUNTS[action] ?? {}).flatMap(([name, what]) => {
    const count = member(facts, name);
    return typeof count === 'number' ? [`${count} ${what}`] : [];
  });
}

function verdictText(verdict: Json): string {
  if (!isJsonObject(verdict)) return '';
  const opinion = verdict['approved'] === true ? 'approved' : 'refused';
  const confidence = typeof verdict['confidence'] === 'number' ? verdict['confidence'].toFixed(2) : '';
  return `${textAt(verdict, 'model')} ${opinion} ${confidence} (prompt ${shortDigest(textAt(verdict, 'promptDigest'))})`;
}

function shortDigest(digest: string): string {
  return digest.replace('sha256:', '').slice(0, 12);
}

function textAt(value: Json, name: string): string {
  const found = member(value, name);
  return typeof found === 'string' ? found : '';
}
