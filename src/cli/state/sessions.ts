import { fileRecordStore } from '../../lib/file-record-store.ts';
import { isJsonObject, type Json, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { traceLog } from '../../standalone/session-trace.ts';
import { SESSIONS } from '../../tools/session-path.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { formatAge, table } from '../table.ts';
import { stateFolder } from './state-folder.ts';

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
}

/** Lists the sessions of a state folder, the last used first. */
export async function sessions(options: ListSessionsOptions, io: CliIo): Promise<number> {
  const folder = await stateFolder(io, options.state);
  const all = await listSessions(fileRecordStore(folder));
  const chosen = options.agent === undefined ? all : all.filter(({ agent }) => agent === options.agent);
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

/** All sessions, the last used first. */
export async function listSessions(records: RecordStore): Promise<SessionOverview[]> {
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
  return {
    ...scope,
    messages: lines.length,
    lastMessage: textAt(received, ['text']),
    openedAt: textAt(info, ['openedAt']),
    // The time in the document is updated once a minute only.
    usedAt: endedAt > usedAt ? endedAt : usedAt,
  };
}

/** The events of one line of a trace. */
export function eventsOf(line: Json): Json[] {
  const events = member(line, 'events');
  return Array.isArray(events) ? events.filter((event) => isJsonObject(event)) : [];
}
