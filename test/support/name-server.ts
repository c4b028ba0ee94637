import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';

export interface NameServerOptions {
  /** Default loopback, at a free port. */
  at?: { host: string; port: number };
  /** The addresses of a name in lower case; undefined for a name that does not exist, `silent` for no answer. */
  addressesOf: (name: string, family: 4 | 6) => readonly string[] | undefined | 'silent';
}

export interface NameServer extends AsyncDisposable {
  readonly port: number;
  /** Names of the received queries, one for each family. */
  readonly queries: string[];
}

const A = 1;
const AAAA = 28;

/** A DNS server over UDP (RFC 1035), whose answers may not be cached. */
export async function startNameServer({ at, addressesOf }: NameServerOptions): Promise<NameServer> {
  const { host, port } = at ?? { host: '127.0.0.1', port: 0 };
  const socket = createSocket('udp4');
  const queries: string[] = [];
  socket.on('message', (query, peer) => {
    const { name, type, end } = question(query);
    queries.push(name);
    const addresses = addressesOf(name, type === AAAA ? 6 : 4);
    if (addresses === 'silent') return;
    socket.send(response(query.subarray(0, end), type, addresses), peer.port, peer.address);
  });
  socket.bind(port, host);
  await once(socket, 'listening');
  return { port: socket.address().port, queries, [Symbol.asyncDispose]: async () => void socket.close() };
}

/** The first question of a DNS message (RFC 1035, 4.1). */
function question(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function response(query: Buffer, type: number, addresses: readonly string[] | undefined): Buffer {
  const records = (addresses ?? []).filter((address) => type === (isIPv4(address) ? A : AAAA));
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(addresses === undefined ? 0x8183 : 0x8180, 2);
  header.writeUInt16BE(records.length, 6);
  header.fill(0, 8, 12);
  const answers = records.map((address) => {
    const bytes = bytesOf(address);
    return Buffer.concat([Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]), bytes]);
  });
  return Buffer.concat([header, query.subarray(12), ...answers]);
}

/** An address as a record has it. IPv6 in its full form with eight groups, or with `::` once. */
function bytesOf(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groups = (text: string): number[] => (text === '' ? [] : text.split(':').map((group) => parseInt(group, 16)));
  const [front, back] = [groups(head), groups(tail ?? '')];
  const all = [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
