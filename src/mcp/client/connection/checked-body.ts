import { LineSplitter } from '../../../lib/async/line-splitter.ts';
import { readBody } from '../../../lib/async/read-body.ts';
import type { TokenBucket } from '../../../lib/async/token-bucket.ts';
import { messageProblem } from './message-limits.ts';

const DATA = /^\ufeff?data(?::|$)/;

export interface BodyLimits {
  /** The longest message, in bytes. */
  maxMessageBytes: number;
  /** Limits the lines of all streams of a connection. */
  unasked: TokenBucket;
  /** Limits the bytes of all streams of a connection; absent: no limit. */
  bytes?: TokenBucket;
  /** Throws for a text that must not be read; absent: none is looked for. */
  inspect?: (text: string) => void;
  /** Called for a stream that breaks a limit. */
  end: (error: unknown) => void;
}

/** The response with a body whose messages are within the limits: the SDK parses whatever arrives. */
export async function checkedResponse(response: Response, limits: BodyLimits): Promise<Response> {
  const { body, status, statusText, headers } = response;
  const { maxMessageBytes, inspect, end } = limits;
  if (body === null) return response;
  if (headers.get('content-type')?.startsWith('text/event-stream') === true) {
    const events = new CheckedEvents(limits);
    const lines = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        try {
          controller.enqueue(events.checked(chunk));
        } catch (error) {
          end(error);
          throw error;
        }
      },
    });
    return new Response(body.pipeThrough(lines), { status, statusText, headers });
  }
  const text = await readBody(body, maxMessageBytes, () => tooLong('a response', maxMessageBytes));
  const problem = messageProblem(text);
  if (problem !== undefined) throw new Error(problem);
  inspect?.(text);
  return new Response(text, { status, statusText, headers });
}

/** The whole lines of a stream. An event is one message, whose JSON has no line break, so it has one line of data. */
class CheckedEvents {
  readonly #limits: BodyLimits;
  readonly #lines: LineSplitter;
  #hasData = false;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
    const { maxMessageBytes } = limits;
    this.#lines = new LineSplitter(maxMessageBytes, () => tooLong('a line', maxMessageBytes));
  }

  checked(chunk: Uint8Array): Uint8Array {
    if (this.#limits.bytes?.tryTake(chunk.byteLength) === false) throw new Error('its streams are too fast');
    let passed = '';
    for (const line of this.#lines.push(chunk)) {
      const text = line.endsWith('\r') ? line.slice(0, -1) : line;
      this.#check(text);
      passed += `${text}\n`;
    }
    return new TextEncoder().encode(passed);
  }

  #check(text: string): void {
    if (text.includes('\r')) throw new Error('a line of a stream has a carriage return');
    const isData = DATA.test(text);
    if (isData && this.#hasData) throw new Error('an event has several lines of data');
    this.#hasData = text !== '' && (this.#hasData || isData);
    if (!this.#limits.unasked.tryTake()) throw new Error('it sends too much that it was not asked for');
    const problem = messageProblem(text.slice(text.indexOf(':') + 1));
    if (problem !== undefined) throw new Error(problem);
    this.#limits.inspect?.(text);
  }
}

function tooLong(what: string, bytes: number): Error {
  return new Error(`${what} has more than ${bytes} bytes`);
}
