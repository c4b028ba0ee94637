import type { SessionStreamLine } from '../../../gateway-api/user-api.ts';
import { isJsonObject, type Json, member, parseUntrustedJson, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, writeJsonLine } from '../../io.ts';
import { withPrintableStrings } from '../../transcript/foreign-text.ts';
import { screenOf } from '../../transcript/screen.ts';
import { withValue } from '../../transcript/structured-reply.ts';
import { Transcript } from '../../transcript/transcript.ts';
import type { GatewayUserClient } from '../gateway-user-client.ts';

export interface SessionName {
  agent: string;
  session: string;
}

/** Behind the last line. */
export interface Position {
  after: number;
  /** Lines already read of the events that were stored at once behind `after`. */
  skip: number;
}

/** The position behind a line. A reply whose event was removed may come after later lines. */
export function behind(line: SessionStreamLine, position: Position): Position {
  const skip = line.kind === 'event' ? (line.skip ?? 0) : 0;
  const isLater = line.seq > position.after || (line.seq === position.after && skip > position.skip);
  return isLater ? { after: line.seq, skip } : position;
}

/** The lines of a session behind a position, until the gateway ends its answer or the connection breaks. */
export async function* readSessionLines(
  gateway: GatewayUserClient,
  { agent, session }: SessionName,
  { after, skip }: Position,
  more: Readonly<Record<string, string>> = {},
): AsyncGenerator<SessionStreamLine> {
  const query = new URLSearchParams({
    after: String(after),
    ...(skip === 0 ? {} : { skip: String(skip) }),
    ...more,
  });
  const path = `agents/${encodeURIComponent(agent)}/sessions/${encodeURIComponent(session)}/events?${query.toString()}`;
  for await (const text of await gateway.lines(path)) {
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

/** Prints the lines of a session as they come. */
export class SessionPrinter {
  readonly #transcript: Transcript;
  readonly #output: 'text' | 'json';
  readonly #io: CliIo;

  constructor(agent: string, output: 'text' | 'json', io: CliIo) {
    this.#transcript = new Transcript(agent, screenOf(io), { isReported: true });
    this.#output = output;
    this.#io = io;
  }

  print(line: SessionStreamLine): void {
    if (this.#output === 'json') writeJsonLine(this.#io, line.kind === 'reply' ? withValue(line, line.text) : line);
    else this.#show(withPrintableStrings(line as unknown as Json) as unknown as SessionStreamLine);
  }

  /** The pod's own `session-end` is skipped: the answer comes from the gateway. */
  #show(line: SessionStreamLine): void {
    if (line.kind === 'reply') this.#transcript.showAnswer(line.text);
    else if (line.kind === 'failed') this.#io.error(`✗ ${printable(line.code, 80)}: ${printable(line.text, 1_000)}\n`);
    else if (line.event.type !== 'session-end') this.#transcript.show(line.event);
  }
}
