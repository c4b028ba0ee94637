import { assertSessionId } from '../../agent/session/session-id.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { type Json, isJsonObject, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { traceLog } from '../../standalone/sessions/session-trace.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { counted } from '../run/model-usage.ts';
import { withPrintableStrings } from '../../lib/text/printable-strings.ts';
import { Screen, screenOf } from '../transcript/screen.ts';
import { Transcript } from '../transcript/transcript.ts';
import { eventsOf, findSession } from './sessions.ts';
import { stateFolder } from './state-folder.ts';

export interface TraceOptions {
  session: string;
  /** Required when several agents have a session of this id. */
  agent?: string;
  state: string;
  output: 'text' | 'json';
}

/** Prints the messages, calls, results and usage of a session. */
export async function trace(options: TraceOptions, io: CliIo): Promise<number> {
  assertSessionId(options.session);
  const records = fileRecordStore(await stateFolder(io, options.state));
  const lines = await records.read(traceLog(await findSession(records, options)));
  if (lines.length === 0)
    throw new TemperError('TEMPER_NOT_FOUND', `no message of session "${options.session}" has been handled to its end`);
  if (options.output === 'json') {
    for (const line of lines) writeEvents(line, options.session, io);
    return EXIT.ok;
  }
  showConversation(lines, screenOf(io));
  return EXIT.ok;
}

function writeEvents(line: Json, session: string, io: CliIo): void {
  const agent = textAt(line, ['agent']);
  for (const event of eventsOf(line)) if (isJsonObject(event)) writeJsonLine(io, { ...event, agent, session });
}

/** The conversation of a stored trace, as text without colours. */
export function conversationText(lines: readonly Json[]): string {
  const written: string[] = [];
  showConversation(lines, new Screen({ out: (text) => void written.push(text), colour: false }));
  return written.join('');
}

function showConversation(lines: readonly Json[], screen: Screen): void {
  const agent = textAt(lines.at(-1), ['agent'], 'agent');
  const transcript = new Transcript(agent, screen);
  const total = { turns: 0, toolCalls: 0, tokens: 0 };
  for (const line of lines) {
    const events = eventsOf(withPrintableStrings(line));
    screen.line(screen.paint('dim', `── ${printable(textAt(events[0], ['time']), 40)}`));
    for (const event of events) {
      if (isKnown(event)) transcript.show(event);
      if (textAt(event, ['type']) === 'session-end') addUsage(total, event);
    }
    const left = numberAt(line, 'left');
    if (left > 0) screen.line(screen.paint('dim', `  ${counted(left, 'further event')} not stored`));
  }
  const { turns, toolCalls, tokens } = total;
  const used = [counted(turns, 'turn'), counted(toolCalls, 'tool call'), counted(tokens, 'token')].join(', ');
  screen.line(screen.paint('dim', `${counted(lines.length, 'message')}: ${used}.`));
}

/** Is this an event that the transcript can show? The file may have been edited or written by another version. */
function isKnown(event: Json): event is Json & AgentEvent {
  const type = textAt(event, ['type']);
  if (type === 'context' && !isContext(event)) return false;
  if (type === 'forge-gate' && textAt(event, ['result', 'gate']) === '') return false;
  const required = Object.hasOwn(REQUIRED, type) ? REQUIRED[type] : undefined;
  const numbers = Object.hasOwn(REQUIRED_NUMBERS, type) ? REQUIRED_NUMBERS[type] : [];
  return (
    required?.every((name) => typeof member(event, name) === 'string') === true &&
    numbers?.every((name) => typeof member(event, name) === 'number') === true
  );
}

function isContext(event: Json): boolean {
  const parts = member(event, 'parts');
  if (!Array.isArray(parts)) return false;
  const isText = (part: Json, name: string): boolean => typeof member(part, name) === 'string';
  return parts.every((part) => isText(part, 'name') && isText(part, 'state') && numberAt(part, 'characters') >= 0);
}

/** The number members that the transcript reads of each type of event. */
const REQUIRED_NUMBERS: Readonly<Record<string, readonly string[]>> = {
  retry: ['attempt', 'milliseconds'],
  compaction: ['items'],
  'model-routed': ['points'],
};

/** The text members that the transcript reads of each type of event. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  'session-start': ['model', 'policy', 'level'],
  'message-received': ['text'],
  message: ['text'],
  'tool-call': ['id', 'tool'],
  'tool-result': ['id', 'tool', 'summary'],
  'file-created': ['path'],
  'forge-start': ['tool', 'mode', 'description'],
  'forge-gate': ['tool'],
  'forge-accepted': ['tool', 'digest', 'tier'],
  'forge-refused': ['tool', 'message'],
  promotion: ['tool', 'state', 'to', 'note'],
  demotion: ['tool', 'reason'],
  'agent-start': ['name', 'model'],
  'agent-message': ['text'],
  'agent-error': ['code', 'message'],
  'agent-complete': ['summary'],
  'approval-requested': ['request', 'tool', 'risk', 'reason'],
  'approval-decided': ['request', 'decision', 'by'],
  'turn-parked': [],
  hook: ['tool', 'event'],
  retry: ['model', 'code'],
  compaction: [],
  context: [],
  'model-routed': ['complexity', 'model'],
  warning: ['message'],
  error: ['code', 'message'],
  'session-end': ['reply'],
};

function addUsage(total: { turns: number; toolCalls: number; tokens: number }, event: Json): void {
  total.turns += numberAt(event, 'turns');
  total.toolCalls += numberAt(event, 'toolCalls');
  total.tokens += numberAt(event, 'inputTokens') + numberAt(event, 'outputTokens');
}

function numberAt(value: Json, name: string): number {
  const found = member(value, name);
  return typeof found === 'number' ? found : 0;
}
