import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../gateway-api/user-api.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { screenOf } from '../transcript/screen.ts';
import { withPrintableStrings } from '../transcript/foreign-text.ts';
import { withValue } from '../transcript/structured-reply.ts';
import { Transcript } from '../transcript/transcript.ts';
import { RetryBudget } from './retry-budget.ts';
import type { GatewayUserClient } from './gateway-user-client.ts';

export interface Followed {
  readonly gateway: GatewayUserClient;
  readonly agent: string;
  readonly receipt: UserMessageReceipt;
  readonly output: 'text' | 'json';
}

/** Behind the last line. */
interface Position {
  after: number;
  /** Lines already read of the events that were stored at once behind `after`. */
  skip: number;
}

/** Limit of consecutive connections without a new line. */
const MAX_EMPTY_ATTEMPTS = 60;

/** Prints events until the message is answered. False when it failed or was refused. A stream that ends early is resumed after its last line. */
export async function followMessage({ gateway, agent, receipt, output }: Followed, io: CliIo): Promise<boolean> {
  const transcript = new Transcript(agent, screenOf(io), { isReported: true });
  let position: Position = { after: receipt.after, skip: 0 };
  const retries = new RetryBudget(MAX_EMPTY_ATTEMPTS, io);
  for (;;) {
    const resumed = position;
    for await (const line of openStream(gateway, agent, receipt, position)) {
      position = behind(line, position);
      if (output === 'json') writeJsonLine(io, line.kind === 'reply' ? withValue(line, line.text) : line);
      else show(withPrintableStrings(line as unknown as Json) as unknown as SessionStreamLine, transcript, io);
      if (line.kind !== 'event' && line.message === receipt.id) {
        return line.kind === 'reply' && line.finishReason !== 'refusal';
      }
    }
    if (position !== resumed) retries.reset();
    if (!(await retries.wait())) break;
  }
  const hint = `the answer is stored; continue with: temper send ${agent} --session ${receipt.session}`;
  throw new TemperError(
    'TEMPER_GATEWAY_UNREACHABLE',
    `the gateway closes every connection without new events; ${hint}`,
  );
}

/** The position behind a line. A reply whose event was removed may come after later lines. */
function behind(line: SessionStreamLine, position: Position): Position {
  const skip = line.kind === 'event' ? (line.skip ?? 0) : 0;
  const isLater = line.seq > position.after || (line.seq === position.after && skip > position.skip);
  return isLater ? { after: line.seq, skip } : position;
}

async function* openStream(
  gateway: GatewayUserClient,
  agent: string,
  { id, session }: UserMessageReceipt,
  { after, skip }: Position,
): AsyncGenerator<SessionStreamLine> {
  const query = new URLSearchParams({
    after: String(after),
    ...(skip === 0 ? {} : { skip: String(skip) }),
    message: id,
    follow: 'true',
  });
  const path = `agents/${encodeURIComponent(agent)}/sessions/${encodeURIComponent(session)}/events?${query.toString()}`;
  let lines: AsyncGenerator<string>;
  try {
    lines = await gateway.lines(path);
  } catch (error) {
    // A gateway that is being replaced returns soon; an error that must not be retried is final.
    if (isTemperError(error) && error.retry !== 'never') return;
    throw error;
  }
  for await (const text of lines) {
    const line = text.trim() === '' ? undefined : lineOf(text);
    if (line !== undefined) yield line;
  }
}

/** Parses a line; undefined when it is incomplete, as the last line of a broken connection may be. */
function lineOf(text: string): SessionStreamLine | undefined {
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
  return value as unknown as SessionStreamLine;
}

/** Prints a line. The pod's own `session-end` is skipped: the answer comes from the gateway. */
function show(line: SessionStreamLine, transcript: Transcript, io: CliIo): void {
  if (line.kind === 'reply') transcript.showAnswer(line.text);
  else if (line.kind === 'failed') io.error(`✗ ${printable(line.code, 80)}: ${printable(line.text, 1_000)}\n`);
  else if (line.event.type !== 'session-end') transcript.show(line.event);
}
