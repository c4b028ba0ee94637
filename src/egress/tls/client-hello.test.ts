import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { assert as check, integer, property, uint8Array } from 'fast-check';
import { MAX_CLIENT_HELLO_BYTES, readClientHello } from './client-hello.ts';
import { handshake, helloBody, helloFor, record, vector } from './client-hello.testing.ts';

const NAME = 'api.example.com';
const HELLO = helloFor(NAME);

/** The first bytes that the TLS client of Node sends. */
async function sentByNode(servername: string | undefined): Promise<Buffer> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, ...(servername === undefined ? {} : { servername }) });
  socket.on('error', () => undefined);
  try {
    const [peer] = await once(server, 'connection');
    const [bytes] = await once(peer, 'data');
    peer.destroy();
    return bytes as Buffer;
  } finally {
    socket.destroy();
    server.close();
  }
}

function split(message: Buffer, sizes: readonly number[]): Buffer {
  const records: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, message.length]) {
    const fragment = message.subarray(at, at + size);
    if (fragment.length > 0) records.push(record(fragment));
    at += size;
  }
  return Buffer.concat(records);
}

describe('the reader of a ClientHello', () => {
  it('the reader finds the server name in what the TLS client of Node sends', async () => {
    assert.deepEqual(readClientHello(await sentByNode('API.Example.com')), {
      hello: { serverName: 'api.example.com', encrypted: false },
    });
    assert.deepEqual(readClientHello(await sentByNode(undefined)), {
      hello: { serverName: undefined, encrypted: false },
    });
  });

  it('the reader needs more bytes until the message is complete, wherever the bytes are split', () => {
    for (let length = 0; length < HELLO.length; length += 1) {
      assert.equal(readClientHello(HELLO.subarray(0, length)), 'more', String(length));
    }
    assert.deepEqual(readClientHello(HELLO), { hello: { serverName: NAME, encrypted: false } });
  });

  it('the reader joins a message that is split over several records', () => {
    const message = handshake(helloBody({ serverNames: [[0, NAME]] }));
    for (const sizes of [[1], [2, 1, 1], [4], [40, 30], [1, 1, 1, 1, 1, 1, 1]]) {
      assert.deepEqual(readClientHello(split(message, sizes)), { hello: { serverName: NAME, encrypted: false } });
    }
  });

  it('the reader accepts further records after the message, such as early data', () => {
    const bytes = Buffer.concat([HELLO, record(Buffer.from('early'), 23)]);
    assert.deepEqual(readClientHello(bytes), { hello: { serverName: NAME, encrypted: false } });
  });

  it('the reader reports an encrypted ClientHello', () => {
    const extensions = [[0xfe_0d, Buffer.alloc(64)]] as const;
    const bytes = record(handshake(helloBody({ serverNames: [[0, NAME]], extensions })));
    assert.deepEqual(readClientHello(bytes), { hello: { serverName: NAME, encrypted: true } });
  });

  const name = (text: string) => record(handshake(helloBody({ serverNames: [[0, text]] })));
  const body = helloBody({ serverNames: [[0, NAME]] });
  const refused: [what: string, bytes: Buffer][] = [
    ['a request in HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a greeting of SSH', Buffer.from('SSH-2.0-OpenSSH_9.9\r\n')],
    ['a hello of SSL 2', Buffer.from('802e0100020015', 'hex')],
    ['a record of another type', record(handshake(body), 23)],
    ['a record of another version', record(handshake(body), 22, 2)],
    ['an empty record', Buffer.concat([record(Buffer.alloc(0)), HELLO])],
    ['a record that is too long', Buffer.from([22, 3, 1, 0x40, 0x01])],
    ['a ServerHello', record(handshake(body, 2))],
    ['a message that is too long', record(Buffer.from([1, 0xff, 0xff, 0xff]))],
    [
      'a message in too many records',
      split(
        handshake(body),
        Array.from({ length: 9 }, () => 1),
      ),
    ],
    ['another message in the same record', record(Buffer.concat([handshake(body), handshake(body)]))],
    ['a message that ends in a member', record(handshake(body.subarray(0, -3)))],
    ['an empty message', record(handshake(Buffer.alloc(0)))],
    ['bytes after the extensions', record(handshake(Buffer.concat([body, Buffer.from([0])])))],
    [
      'two server names',
      record(
        handshake(
          helloBody({
            serverNames: [
              [0, NAME],
              [0, 'evil.test'],
            ],
          }),
        ),
      ),
    ],
    ['a server name of another type', record(handshake(helloBody({ serverNames: [[1, NAME]] })))],
    ['no server name in the extension', record(handshake(helloBody({ serverNames: [] })))],
    [
      'the extension of server names twice',
      record(
        handshake(
          helloBody({
            serverNames: [[0, NAME]],
            extensions: [[0, vector(2, Buffer.concat([Buffer.from([0]), vector(2, Buffer.from('evil.test'))]))]],
          }),
        ),
      ),
    ],
    ['an empty server name', name('')],
    ['a server name with a final dot', name(`${NAME}.`)],
    ['a server name with a zero byte', name(`${NAME}\0.evil.test`)],
    ['a server name outside ASCII', name('api.ex\u00e4mple.com')],
    ['a server name with a port', name(`${NAME}:443`)],
    ['a server name that is too long', name(`${'a.'.repeat(127)}a`)],
  ];
  for (const [what, bytes] of refused) {
    it(`the reader refuses ${what}`, () => {
      const result = readClientHello(bytes);
      assert.ok(result !== 'more' && 'invalid' in result, JSON.stringify(result));
    });
  }

  it('the reader refuses a message that does not end within its limit', () => {
    const started = record(Buffer.concat([Buffer.from([1, 0, 0x3f, 0xf0]), Buffer.alloc(16_000)]));
    const bytes = Buffer.concat([started, Buffer.from([22, 3, 1, 1, 0]), Buffer.alloc(500)]);
    assert.ok(bytes.length >= MAX_CLIENT_HELLO_BYTES);
    const result = readClientHello(bytes.subarray(0, MAX_CLIENT_HELLO_BYTES));
    assert.ok(result !== 'more' && 'invalid' in result, JSON.stringify(result));
  });

  it('the reader never fails, and never reads another name, for altered bytes', () => {
    check(
      property(integer({ min: 0, max: HELLO.length - 1 }), integer({ min: 0, max: 255 }), (at, value) => {
        const altered = Buffer.from(HELLO);
        altered[at] = value;
        readClientHello(altered);
      }),
      { numRuns: 1_000 },
    );
    check(
      property(uint8Array({ maxLength: 600 }), (bytes) => {
        readClientHello(record(handshake(Buffer.from(bytes))));
      }),
      { numRuns: 1_000 },
    );
  });
});
