import { LineSplitter } from '../../../lib/async/line-splitter.ts';
import { readBody } from '../../../lib/async/read-body.ts';
import type { TokenBucket } from '../../../lib/async/token-bucket.ts';
import { MAX_MESSAGE_BYTES, messageProblem } from './message-limits.ts';

const DATA = /^\ufeff?data(?::|$)/;

export interface BodyLimits {
  /** Limits the lines of all streams of a connection. */
  unasked: TokenBucket;
  /** Called for a stream that breaks a limit. */
  end: (error: unknown) => void;
}

/** The response with a body whose messages are within the limits: the SDK parses whatever arrives. */
export async function checkedResponse(response: Response, { unasked, end }: BodyLimits): Promise<Response> {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  if (headers.get('content-type')?.startsWith('text/event-stream') === true) {
    const events = new CheckedEvents(unasked);
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
  const text = await readBody(body, MAX_MESSAGE_BYTES, () => tooLong('a response'));
  const problem = messageProblem(text);
  if (problem !== undefined) throw new Error(problem);
  return new Response(text, { status, statusText, headers });
}

/** The whole lines of a stream. An event is one message, whose JSON has no line break, so it has one line of data. */
class CheckedEvents {
  readonly #unasked: TokenBucket;
  readonly #lines = new LineSplitter(MAX_MESSAGE_BYTES, () => tooLong('a line'));
  #hasData = false;

  constructor(unasked: TokenBucket) {
    this.#unasked = unasked;
  }

  checked(chunk: Uint8Array): Uint8Array {
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
    if (!this.#unasked.tryTake()) throw new Error('it sends too much that it was not asked for');
    const problem = messageProblem(text.slice(text.indexOf(':') + 1));
    if (problem !== undefined) throw new Error(problem);
  }
}

function tooLong(what: string): Error {
  return new Error(`${what} has more than ${MAX_MESSAGE_BYTES} bytes`);
}
