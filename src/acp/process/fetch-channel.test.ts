import assert from 'node:assert/strict';
import { duplexPair } from 'node:stream';
import { it } from 'node:test';
import { serveFetchChannel } from './fetch-channel.ts';

it('the open requests of an agent have at most so many bytes together, and a closed one frees its own', async () => {
  const [near, far] = duplexPair();
  const held = Promise.withResolvers<Response>();
  const violations: string[] = [];
  const handler = (request: Request): Promise<Response> =>
    request.url.endsWith('/held') ? held.promise : Promise.resolve(new Response('served'));
  serveFetchChannel(far, handler, (reason) => violations.push(reason), 2_000);
  near.setEncoding('utf8');
  const ask = (id: number, path: string): void => {
    near.write(`${JSON.stringify({ id, method: 'POST', path, headers: [], body: 'x'.repeat(1_000) })}\n`);
  };
  const chunks = near[Symbol.asyncIterator]() as AsyncIterator<string>;
  let received = '';
  const line = async (): Promise<Record<string, unknown>> => {
    while (!received.includes('\n')) received += String((await chunks.next()).value);
    const end = received.indexOf('\n');
    const text = received.slice(0, end);
    received = received.slice(end + 1);
    return JSON.parse(text) as Record<string, unknown>;
  };
  ask(1, '/held');
  ask(2, '/other');
  assert.deepEqual(await line(), { id: 2, error: 'the open requests have too many bytes' });
  held.resolve(new Response('late'));
  const answer = [await line(), await line(), await line()].map(({ id, text, end }) => text ?? end ?? id);
  assert.deepEqual(answer, [1, 'late', true]);
  ask(3, '/other');
  assert.equal((await line())['status'], 200);
  assert.deepEqual(violations, []);
});
