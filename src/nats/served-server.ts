import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { isJsonObject, parseUntrustedJson } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';

/** What a server says of itself to anybody who connects. */
export interface ServedServer {
  /** Another one each time it starts. */
  readonly id: string;
  /** The certificate it shows, DER. */
  readonly certificate: Buffer;
}

const ID = /^[A-Z0-9]{56}$/;
const LONGEST_GREETING = 64 * 1_024;

/**
 * Looks at a server without a key: nothing is sent, so its certificate need not be trusted to be read. Throws what the socket does, and
 * TEMPER_BUS_UNAVAILABLE for who is no such server or speaks no TLS.
 */
export async function lookAtServer(url: string, signal: AbortSignal): Promise<ServedServer> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp({ host: hostname, port: Number(port === '' ? 4_222 : port), signal });
  try {
    const id = idOf(await greetingOf(socket));
    return { id, certificate: await certificateOf(socket, hostname) };
  } finally {
    socket.destroy();
  }
}

/** The first line: the server speaks first, in the clear. */
function greetingOf(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const take = (data: Buffer): void => {
      text += data.toString('latin1');
      const end = text.indexOf('\r\n');
      if (end < 0 && text.length < LONGEST_GREETING) return;
      // What comes next is TLS, for another reader.
      socket.pause().removeListener('data', take);
      if (end < 0) reject(noServer('it greets with too much'));
      else resolve(text.slice(0, end));
    };
    socket.on('data', take);
    socket.once('error', reject).once('close', () => reject(noServer('it closed the connection')));
  });
}

function idOf(greeting: string): string {
  if (!greeting.startsWith('INFO ')) throw noServer('it does not greet as one');
  let info: unknown;
  try {
    info = parseUntrustedJson(greeting.slice('INFO '.length));
  } catch {
    throw noServer('its greeting is no JSON');
  }
  const id = isJsonObject(info) ? info['server_id'] : undefined;
  if (typeof id !== 'string' || !ID.test(id)) throw noServer('it has no id');
  return id;
}

function certificateOf(socket: Socket, host: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tls = connectTls({ socket, servername: host, rejectUnauthorized: false });
    tls.once('secureConnect', () => {
      const { raw } = tls.getPeerCertificate() as { raw?: Buffer };
      tls.destroy();
      if (raw === undefined) reject(noServer('it shows no certificate'));
      else resolve(raw);
    });
    tls.once('error', reject).once('close', () => reject(noServer('it speaks no TLS')));
  });
}

function noServer(why: string): TemperError {
  const message = `what listens at the address of the bus is no server of it: ${why}`;
  return new TemperError('TEMPER_BUS_UNAVAILABLE', message, { retry: 'backoff' });
}
