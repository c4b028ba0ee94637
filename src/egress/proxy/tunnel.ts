import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { TemperError } from '../../lib/errors.ts';
import type { Target } from '../../net/targets.ts';
import { tunnelTarget } from '../request/target.ts';
import { type ClientHello, readClientHello } from '../tls/client-hello.ts';
import { serverNameProblem } from '../tls/server-name.ts';
import { endWhenIdle, Exchange, type ExchangeDeps } from './exchange.ts';
import { metered } from './metered.ts';
import type { OpenConnection } from './open-connection.ts';
import { refuseTunnel } from './refusal.ts';

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';
/** The fatal TLS alert `access_denied` (RFC 8446, 6). */
const ACCESS_DENIED = Buffer.from([21, 3, 1, 0, 2, 2, 49]);
/** Of one kind on one socket: the parser, the limits of connections and the pipelines of both directions have some each. */
const MAX_LISTENERS = 24;
const HELLO_TIMEOUT_MS = 10_000;

/** Serves `CONNECT`: a tunnel for TLS to the host that its request line and the TLS handshake name alike. Never rejects. */
export async function serveTunnel(
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
  deps: ExchangeDeps,
): Promise<void> {
  client.setTimeout(0);
  client.setMaxListeners(MAX_LISTENERS);
  client.on('error', () => undefined);
  const exchange = new Exchange(request, client, deps);
  let [established, relaying] = [false, false];
  let failure: unknown;
  try {
    const target = tunnelTarget(request.url ?? '');
    const { connection, upstream, signal } = await exchange.open(target);
    endWhenIdle(client, connection);
    client.write(ESTABLISHED);
    established = true;
    const first = await firstMessage(client, head, target, signal);
    exchange.note({ encryptedHello: first.hello.encrypted });
    await connection.count('sent', first.bytes.length);
    upstream.write(first.bytes);
    relaying = true;
    await relay(client, upstream, connection, signal);
  } catch (error) {
    // A client ends a tunnel when it has its answer.
    if (!relaying || !exchange.isLeft) failure = error;
  }
  const error = exchange.close(failure);
  if (error === undefined) client.destroySoon();
  else if (!established) refuseTunnel(client, error);
  else if (error.code === 'TEMPER_FETCH_DENIED') client.end(ACCESS_DENIED, () => client.destroy());
  else client.destroy();
}

/** The bytes up to the end of the ClientHello, or further. Throws TEMPER_FETCH_DENIED for another server or another protocol. */
async function firstMessage(
  client: Socket,
  head: Buffer,
  target: Target,
  signal: AbortSignal,
): Promise<{ bytes: Buffer; hello: ClientHello }> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(HELLO_TIMEOUT_MS)]);
  let bytes = head;
  for (;;) {
    const result = readClientHello(bytes);
    if (result === 'more') {
      bytes = Buffer.concat([bytes, await nextChunk(client, bounded)]);
      continue;
    }
    const problem =
      'invalid' in result ? `not the start of TLS: ${result.invalid}` : serverNameProblem(result.hello, target);
    if (problem !== undefined) throw new TemperError('TEMPER_FETCH_DENIED', `the tunnel is refused: ${problem}`);
    if ('hello' in result) return { bytes, hello: result.hello };
  }
}

/** The next bytes of a paused stream. Throws TEMPER_TIMEOUT or TEMPER_CANCELLED. */
async function nextChunk(client: Socket, signal: AbortSignal): Promise<Buffer> {
  const waiting = Promise.withResolvers<void>();
  const wake = (): void => waiting.resolve();
  client.on('readable', wake).on('end', wake).on('close', wake);
  signal.addEventListener('abort', wake);
  try {
    for (;;) {
      const chunk = client.read() as Buffer | null;
      if (chunk !== null) return chunk;
      if (signal.aborted) throw new TemperError('TEMPER_TIMEOUT', 'no TLS handshake in time');
      if (client.readableEnded || client.destroyed) {
        throw new TemperError('TEMPER_CANCELLED', 'the client closed the connection before its TLS handshake');
      }
      await waiting.promise;
      Object.assign(waiting, Promise.withResolvers<void>());
    }
  } finally {
    client.off('readable', wake).off('end', wake).off('close', wake);
    signal.removeEventListener('abort', wake);
  }
}

/** Until the target has sent everything: what the client still sends then has no reader. */
async function relay(client: Socket, upstream: Socket, connection: OpenConnection, signal: AbortSignal): Promise<void> {
  const sent = pipeline(client, metered(connection, 'sent'), upstream, { signal });
  // When it fails, the other direction fails too, and reports it.
  sent.catch(() => undefined);
  await pipeline(upstream, metered(connection, 'received'), client, { signal });
}
