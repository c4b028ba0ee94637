import type { ServerResponse } from 'node:http';
import type { FilledAnswer, ReplayWireFormat } from '../../models/replay/wire/wire.ts';
import { formatServerEvent } from '../../models/replay/wire/wire.ts';

/** What a fault means for the charge of a conversation. */
type FaultCharge =
  /** The provider did no work in the failed attempt: the charge is exactly what was served. */
  | 'Exact'
  /** The provider may charge the failed attempt: the charge is at least what was served. */
  | 'AtLeast';

export interface ProviderFault {
  name: string;
  charge: FaultCharge;
  /** The fault is in a complete answer, which the provider counts as served. */
  isServed?: true;
  send(response: ServerResponse, wire: ReplayWireFormat, answer: FilledAnswer): void;
}

const SSE = { 'content-type': 'text/event-stream' };
const JSON_TYPE = { 'content-type': 'application/json' };

const framesOf = (wire: ReplayWireFormat, answer: FilledAnswer): string[] => wire.events(answer).map(formatServerEvent);

export function sendWhole(response: ServerResponse, wire: ReplayWireFormat, answer: FilledAnswer): void {
  response.writeHead(200, SSE);
  response.end(framesOf(wire, answer).join(''));
}

/** An error response. */
function status(name: string, code: number, type: string, headers: Record<string, string> = {}): ProviderFault {
  return {
    name,
    charge: 'Exact',
    send(response, wire) {
      response.writeHead(code, { ...JSON_TYPE, ...headers });
      response.end(type === '' ? '<html>bad gateway</html>' : JSON.stringify(wire.error(type, 'scripted')));
    },
  };
}

/** A stream of which `cut` says what is sent, and how it ends. */
function stream(
  name: string,
  charge: FaultCharge,
  cut: (whole: Buffer, frames: string[]) => Buffer,
  end: 'close' | 'reset' | 'silence' = 'close',
): ProviderFault {
  return {
    name,
    charge,
    send(response, wire, answer) {
      const frames = framesOf(wire, answer);
      response.writeHead(200, SSE);
      response.write(cut(Buffer.from(frames.join('')), frames), () => {
        if (end === 'close') response.end();
        if (end === 'reset') setTimeout(() => response.socket?.resetAndDestroy(), 5);
      });
      if (end === 'silence') response.flushHeaders();
    },
  };
}

const changed = (name: string, change: (answer: FilledAnswer) => FilledAnswer): ProviderFault => ({
  name,
  charge: 'Exact',
  isServed: true,
  send: (response, wire, answer) => sendWhole(response, wire, change(answer)),
});

/** An answer whose usage is no count: it is charged by its size. */
const uncounted = (name: string, tokens: number): ProviderFault => ({
  name,
  charge: 'AtLeast',
  send: (response, wire, answer) =>
    sendWhole(response, wire, {
      ...answer,
      usage: { inputTokens: tokens, outputTokens: tokens, cachedInputTokens: 0 },
    }),
});

const NOTHING = Buffer.alloc(0);
const INVALID = Buffer.from([0x61, 0xff, 0xfe]);
const ERROR_FRAME = (frames: string[]): Buffer => Buffer.from(`${frames[0]}event: x\ndata: {"type":\n\n`);
/** Inside of the arguments of the call: each answer has this text only there. */
const inArguments = (whole: Buffer): number => whole.indexOf('number') + 3;
const inCharacter = (whole: Buffer): number => whole.indexOf(Buffer.from('✓')) + 1;

export const PROVIDER_FAULTS: readonly ProviderFault[] = [
  status('a rate limit with a wait', 429, 'rate_limit_error', { 'retry-after': '0' }),
  status('a rate limit with a wait in milliseconds', 429, 'rate_limit_error', { 'retry-after-ms': '1' }),
  status('a rate limit without a wait', 429, 'rate_limit_error'),
  status('a server error', 500, 'api_error'),
  status('a bad gateway with a page', 502, ''),
  status('an unavailable service', 503, 'api_error'),
  status('an overload', 529, 'overloaded_error'),
  { ...status('a gateway timeout', 504, 'api_error'), charge: 'AtLeast' },
  { ...status('a request timeout', 408, 'api_error'), charge: 'AtLeast' },
  { name: 'a reset before the headers', charge: 'AtLeast', send: (response) => response.socket?.resetAndDestroy() },
  stream('silence before the first token', 'AtLeast', () => NOTHING, 'silence'),
  stream('silence between tokens', 'AtLeast', (whole) => whole.subarray(0, inArguments(whole)), 'silence'),
  stream('a reset between tokens', 'AtLeast', (whole) => whole.subarray(0, inArguments(whole)), 'reset'),
  stream('an empty stream', 'AtLeast', () => NOTHING),
  stream('a cut after the first event', 'AtLeast', (_, frames) => Buffer.from(frames[0] ?? '')),
  stream('a cut in the first event', 'AtLeast', (whole) => whole.subarray(0, 12)),
  stream('a cut in a character', 'AtLeast', (whole) => whole.subarray(0, inCharacter(whole))),
  stream('a cut in the arguments of a call', 'AtLeast', (whole) => whole.subarray(0, inArguments(whole))),
  stream('a cut before the last event', 'AtLeast', (_, frames) => Buffer.from(frames.slice(0, -2).join(''))),
  stream('bytes that are not UTF-8', 'AtLeast', (whole) =>
    Buffer.concat([whole.subarray(0, inCharacter(whole)), INVALID, whole.subarray(inCharacter(whole))]),
  ),
  stream('an event that is not JSON', 'AtLeast', (_, frames) => ERROR_FRAME(frames)),
  stream('an endless stream', 'AtLeast', () => Buffer.from(': nothing\n\n'.repeat(6_000))),
  {
    name: 'an error inside of a 200',
    charge: 'AtLeast',
    send(response, wire) {
      response.writeHead(200, JSON_TYPE);
      response.end(JSON.stringify(wire.error('overloaded_error', 'scripted')));
    },
  },
  {
    name: 'an error event after the first text',
    charge: 'AtLeast',
    send: (response, wire, answer) =>
      sendWhole(response, wire, { ...answer, inBandError: { type: 'overloaded_error', message: 'scripted' } }),
  },
  changed('an answer that is cut at its limit inside of a call', (answer) => ({
    ...answer,
    stopReason: 'length',
    calls: answer.calls.map((call) => ({ ...call, arguments: call.arguments.slice(0, 8) })),
  })),
  changed('an empty answer', (answer) => ({ ...answer, text: '', calls: [], stopReason: 'stop' })),
  changed('the same id in every answer', (answer) => ({
    ...answer,
    calls: answer.calls.map((call) => ({ ...call, id: 'same' })),
  })),
  uncounted('a usage of zero', 0),
  uncounted('a negative usage', -5),
];
