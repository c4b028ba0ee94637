import { fileRecordStore } from '../../lib/file-record-store.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { traceLog } from '../../standalone/sessions/session-trace.ts';
import { SESSIONS, type SessionScope } from '../../tools/session-path.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { formatAge, table } from '../table.ts';
import { stateFolder } from './state-folder.ts';
import { assertExists } from './state-records.ts';

export interface ListSessionsOptions {
  agent?: string | undefined;
  state: string;
  output: 'text' | 'json';
}

export interface SessionOverview {
  session: string;
  agent: string;
  namespace: string;
  messages: number;
  /** Text of the last message of the user. */
  lastMessage: string;
  openedAt: string;
  usedAt: string;
  closedAt?: string;
}

/** Lists the sessions of a state folder, the last used first. */
export async function sessions(options: ListSessionsOptions, io: CliIo): Promise<number> {
  const folder = await stateFolder(io, options.state);
  const records = fileRecordStore(folder);
  const all = await allSessions(records);
  const owners = all.map(({ agent }) => agent);
  if (options.agent !== undefined) await assertExists(records, 'agents', options.agent, owners);
  const chosen = all.filter(
    ({ agent, closedAt }) => closedAt === undefined && [undefined, agent].includes(options.agent),
  );
  if (options.output === 'json') {
    for (const summary of chosen) writeJsonLine(io, { ...summary });
    return EXIT.ok;
  }
  if (chosen.length === 0) {
    const whose = options.agent === undefined ? '' : ` of agent "${printable(options.agent, 63)}"`;
    io.out(`No sessions${whose} in ${printable(options.state, 200)}.\n`);
    return EXIT.ok;
  }
  const now = new Date();
  const rows = chosen.map(({ session, agent, messages, lastMessage, openedAt, usedAt }) => [
    session,
    agent,
    String(messages),
    formatAge(usedAt, now),
    formatAge(openedAt, now),
    lastMessage.length > 60 ? `${lastMessage.slice(0, 59)}…` : lastMessage,
  ]);
  io.out(table(['SESSION', 'AGENT', 'MESSAGES', 'LAST-USED', 'AGE', 'LAST-MESSAGE'], rows));
  return EXIT.ok;
}

/** The open sessions, the last used first. */
export async function listSessions(records: RecordStore): Promise<SessionOverview[]> {
  return (await allSessions(records)).filter(({ closedAt }) => closedAt === undefined);
}

async function allSessions(records: RecordStore): Promise<SessionOverview[]> {
  const stored = await records.list(SESSIONS);
  const summaries = await Promise.all(stored.map(({ value }) => summaryOf(records, value)));
  return summaries
    .filter((summary) => summary !== undefined)
    .sort((a, b) => (a.usedAt < b.usedAt ? 1 : a.usedAt > b.usedAt ? -1 : 0));
}

/** Undefined for a document that names no session. */
async function summaryOf(records: RecordStore, info: Json): Promise<SessionOverview | undefined> {
  const scope = {
    session: textAt(info, ['session']),
    agent: textAt(info, ['agent']),
    namespace: textAt(info, ['namespace']),
  };
  if (Object.values(scope).includes('')) return undefined;
  const lines = await records.read(traceLog(scope));
  const last = lines.at(-1);
  const events = last === undefined ? [] : eventsOf(last);
  const received = events.find((event) => textAt(event, ['type']) === 'message-received');
  const endedAt = textAt(events.at(-1), ['time']);
  const usedAt = textAt(info, ['usedAt']);
  const closedAt = textAt(info, ['closedAt']);
  return {
    ...scope,
    messages: lines.length,
    lastMessage: textAt(received, ['text']),
    openedAt: textAt(info, ['openedAt']),
    // The time in the document is updated once a minute only.
    usedAt: endedAt > usedAt ? endedAt : usedAt,
    ...(closedAt === '' ? {} : { closedAt }),
  };
}

/** The events of one line of a trace. */
export function eventsOf(line: Json): Json[] {
  const events = member(line, 'events');
  return Array.isArray(events) ? events.filter((event) => isJsonObject(event)) : [];
}

/** The session of this id. Throws TEMPER_NOT_FOUND, or TEMPER_USAGE when several agents have one. */
export async function findSession(
  records: RecordStore,
  { session, agent }: { session: string; agent?: string },
): Promise<SessionScope> {
  const all = await allSessions(records);
  const found = all.filter((summary) => summary.session === session && isOf(summary, agent));
  const [first] = found;
  if (first === undefined) throw unknownSession(all, session, agent);
  if (found.length === 1) return first;
  const isAmbiguous = new Set(found.map((summary) => summary.agent)).size < found.length;
  const agents = found.map((summary) => (isAmbiguous ? `${summary.namespace}/${summary.agent}` : summary.agent));
  throw new TemperError(
    'TEMPER_USAGE',
    `several agents have a session "${session}": ${agents.join(', ')}. Choose one with --agent`,
  );
}

/** An agent is named NAME or NAMESPACE/NAME. */
function isOf(summary: SessionOverview, agent: string | undefined): boolean {
  return agent === undefined || [summary.agent, `${summary.namespace}/${summary.agent}`].includes(agent);
}

function unknownSession(all: readonly SessionOverview[], session: string, agent: string | undefined): TemperError {
  const known = all.slice(0, 10).map((summary) => summary.session);
  const hint = known.length === 0 ? 'there are none' : `there are: ${known.join(', ')}`;
  const owner = agent === undefined ? '' : ` of agent "${agent}"`;
  return new TemperError('TEMPER_NOT_FOUND', `no conversation is stored for session "${session}"${owner}; ${hint}`);
}
