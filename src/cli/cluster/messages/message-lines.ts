import { isTemperError, TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, member, parseUntrustedJson, textAt } from '../../../lib/json.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../gateway-api/user-api.ts';
import type { CliIo } from '../../io.ts';
import type { GatewayUserClient } from '../gateway-user-client.ts';
import { RetryBudget } from '../retry-budget.ts';

/** The message whose lines are read. */
export interface FollowedMessage {
  readonly gateway: Pick<GatewayUserClient, 'lines'>;
  readonly agent: string;
  readonly receipt: Pick<UserMessageReceipt, 'id' | 'session' | 'after'>;
}

/** Behind a line. */
export interface LinePosition {
  readonly after: number;
  /** Lines already read of the events that were stored at once behind `after`. */
  readonly skip: number;
}

/** Limit of consecutive connections without a new line. */
const MAX_EMPTY_ATTEMPTS = 60;

/**
 * The lines of the session until the message is answered or has failed, which is the last line. A stream that ends early is resumed after
 * its last line. Throws TEMPER_GATEWAY_UNREACHABLE.
 */
export async function* messageLines(
  { gateway, agent, receipt }: FollowedMessage,
  io: Pick<CliIo, 'error' | 'signal'>,
  position: LinePosition = { after: receipt.after, skip: 0 },
): AsyncGenerator<SessionStreamLine> {
  let current = position;
  const retries = new RetryBudget(MAX_EMPTY_ATTEMPTS, io);
  for (;;) {
    const resumed = current;
    for await (const line of openStream({ gateway, agent, receipt }, current)) {
      current = behind(line, current);
      yield line;
      if (line.kind !== 'event' && line.message === receipt.id) return;
    }
    if (current !== resumed) retries.reset();
    if (!(await retries.wait())) break;
  }
  const hint = `the answer is stored; read it with: temper trace ${receipt.session} --agent ${agent}`;
  throw new TemperError(
    'TEMPER_GATEWAY_UNREACHABLE',
    `the gateway closes every connection without new events; ${hint}`,
    { retry: 'backoff' },
  );
}

/** The position behind a line. A reply whose event was removed may come after later lines. */
export function behind(line: SessionStreamLine, position: LinePosition): LinePosition {
  const skip = line.kind === 'event' ? (line.skip ?? 0) : 0;
  const isLater = line.seq > position.after || (line.seq === position.after && skip > position.skip);
  return isLater ? { after: line.seq, skip } : position;
}

async function* openStream(
  { gateway, agent, receipt: { id, session } }: FollowedMessage,
  position: LinePosition,
): AsyncGenerator<SessionStreamLine> {
  const query = new URLSearchParams({ ...positionQuery(position), message: id, follow: 'true' });
  let lines: AsyncGenerator<string>;
  try {
    lines = await gateway.lines(`${eventsPath(agent, session)}?${query.toString()}`);
  } catch (error) {
    // A gateway that is being replaced returns soon; an error that must not be retried is final.
    if (isTemperError(error) && error.retry !== 'never') return;
    throw error;
  }
  yield* streamLines(lines);
}

export function positionQuery({ after, skip }: LinePosition): Record<string, string> {
  return { after: String(after), ...(skip === 0 ? {} : { skip: String(skip) }) };
}

/** The events of a session, below the path of the namespace. */
export function eventsPath(agent: string, session: string): string {
  return `agents/${encodeURIComponent(agent)}/sessions/${encodeURIComponent(session)}/events`;
}

/** The lines of a response; without the last one of a broken connection. */
export async function* streamLines(lines: AsyncIterable<string>): AsyncGenerator<SessionStreamLine> {
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
