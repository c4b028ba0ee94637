import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/escape.ts';
import { isJsonObject, type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import type { FollowLine, PersonReceipt } from '../../remote/people.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { painter, Transcript } from '../transcript.ts';
import { Patience } from './patience.ts';
import type { PeopleGateway } from './people-gateway.ts';

export interface Followed {
  readonly gateway: PeopleGateway;
  readonly agent: string;
  readonly receipt: PersonReceipt;
  readonly output: 'text' | 'json';
}

/** Connections in a row that brought nothing new before it is given up. */
const EMPTY_ATTEMPTS = 60;

/** Prints what happens until the message is answered. False when it failed or was refused. A stream that ends early is taken up where it ended. */
export async function followMessage({ gateway, agent, receipt, output }: Followed, io: CliIo): Promise<boolean> {
  const transcript = new Transcript(agent, painter(io.colour), (line) => io.out(`${line}\n`));
  let { after } = receipt;
  const patience = new Patience(EMPTY_ATTEMPTS, io);
  for (;;) {
    const before = after;
    for await (const line of connection(gateway, agent, receipt, after)) {
      after = Math.max(after, line.seq);
      if (output === 'json') writeJsonLine(io, line);
      else show(line, transcript, io);
      if (line.kind !== 'event' && line.message === receipt.id) {
        return line.kind === 'reply' && line.ending !== 'refusal';
      }
    }
    if (after > before) patience.renew();
    if (!(await patience.wait())) break;
  }
  const again = `the answer is kept: temper send ${agent} --session ${receipt.session} goes on with it`;
  throw new TemperError('TEMPER_GATEWAY_UNREACHABLE', `the gateway ends every connection without news; ${again}`);
}

async function* connection(
  gateway: PeopleGateway,
  agent: string,
  { id, session }: PersonReceipt,
  after: number,
): AsyncGenerator<FollowLine> {
  const query = new URLSearchParams({ after: String(after), message: id, follow: 'true' });
  const path = `agents/${encodeURIComponent(agent)}/sessions/${encodeURIComponent(session)}/events?${query.toString()}`;
  let lines: AsyncGenerator<string>;
  try {
    lines = await gateway.lines(path);
  } catch (error) {
    // A gateway that is being replaced comes back; what it refuses, it refuses again.
    if (isTemperError(error) && error.retry !== 'never') return;
    throw error;
  }
  for await (const text of lines) {
    const line = text.trim() === '' ? undefined : lineOf(text);
    if (line !== undefined) yield line;
  }
}

/** The last line of a connection that broke may be half of one. */
function lineOf(text: string): FollowLine | undefined {
  let value: Json;
  try {
    value = parseUntrustedJson(text);
  } catch {
    return undefined;
  }
  const seq = member(value, 'seq');
  const kind = textAt(value, ['kind']);
  if (typeof seq !== 'number' || !['event', 'reply', 'failed'].includes(kind)) return undefined;
  if (kind === 'event' && !isJsonObject(member(value, 'event'))) return undefined;
  return value as unknown as FollowLine;
}

/** What the pod says it answered is left out: the gateway says what the answer was. */
function show(line: FollowLine, transcript: Transcript, io: CliIo): void {
  if (line.kind === 'reply') transcript.answer(line.text);
  else if (line.kind === 'failed') io.error(`✗ ${printable(line.code, 80)}: ${printable(line.text, 1_000)}\n`);
  else if (line.event.type !== 'session-end') transcript.show(line.event);
}
