import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { isJsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { TemperError } from '../../lib/errors.ts';

/** Identity of a running NATS server, readable without authentication. */
export interface NatsServerInfo {
  /** `server_id` of the INFO message. Changes at every start of the server. */
  readonly id: string;
  /** The server stores messages. False after its disk was full or failed: it then goes on without JetStream. */
  readonly jetstream: boolean;
  /** The server's TLS certificate, DER. */
  readonly certificate: Buffer;
}

const ID = /^[A-Z0-9]{56}$/;
const MAX_INFO_LINE_CHARACTERS = 64 * 1_024;

/**
 * Reads a server's id and certificate without credentials. No secret is sent, so the certificate is read without being verified. Throws
 * socket errors, and TEMPER_BUS_UNAVAILABLE when the peer is not a NATS server or does not offer TLS.
 */
export async function readServerInfo(url: string, signal: AbortSignal): Promise<NatsServerInfo> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp({ host: hostname, port: Number(port === '' ? 4_222 : port), signal });
  try {
    const identity = parseInfo(await readInfoLine(socket));
    return { ...identity, certificate: await readCertificate(socket, hostname) };
  } finally {
    socket.destroy();
  }
}

/** Reads the INFO line, which the server sends first and unencrypted. */
function readInfoLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (data: Buffer): void => {
      text += data.toString('latin1');
      const end = text.indexOf('\r\n');
      if (end < 0 && text.length < MAX_INFO_LINE_CHARACTERS) return;
      // The bytes after the INFO line belong to the TLS handshake.
      socket.pause().removeListener('data', onData);
      if (end < 0) reject(notNatsServer('its first line is too long'));
      else resolve(text.slice(0, end));
    };
    socket.on('data', onData);
    socket.once('error', reject).once('close', () => reject(notNatsServer('it closed the connection')));
  });
}

function parseInfo(infoLine: string): Pick<NatsServerInfo, 'id' | 'jetstream'> {
  if (!infoLine.startsWith('INFO ')) throw notNatsServer('its first line is not INFO');
  let info: unknown;
  try {
    info = parseUntrustedJson(infoLine.slice('INFO '.length));
  } catch {
    throw notNatsServer('its INFO is not JSON');
  }
  const { server_id: id, jetstream } = isJsonObject(info) ? info : {};
  if (typeof id !== 'string' || !ID.test(id)) throw notNatsServer('its INFO has no valid server_id');
  return { id, jetstream: jetstream === true };
}

function readCertificate(socket: Socket, host: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tls = connectTls({ socket, servername: host, rejectUnauthorized: false });
    tls.once('secureConnect', () => {
      const { raw } = tls.getPeerCertificate() as { raw?: Buffer };
      tls.destroy();
      if (raw === undefined) reject(notNatsServer('it has no certificate'));
      else resolve(raw);
    });
    tls.once('error', reject).once('close', () => reject(notNatsServer('it does not offer TLS')));
  });
}

function notNatsServer(reason: string): TemperError {
  const message = `the peer at the NATS address is not a NATS server with TLS: ${reason}`;
  return new TemperError('TEMPER_BUS_UNAVAILABLE', message, { retry: 'backoff' });
}
