/** Builds ClientHello messages for tests. */

export interface HelloParts {
  serverNames?: readonly (readonly [type: number, name: string])[];
  /** Further extensions. */
  extensions?: readonly (readonly [type: number, content: Buffer])[];
  sessionId?: Buffer;
}

export function vector(size: number, content: Buffer): Buffer {
  const length = Buffer.alloc(size);
  length.writeUIntBE(content.length, 0, size);
  return Buffer.concat([length, content]);
}

function extension(type: number, content: Buffer): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(type);
  return Buffer.concat([head, vector(2, content)]);
}

function serverNameList(names: readonly (readonly [number, string])[]): Buffer {
  const entries = names.map(([type, name]) =>
    Buffer.concat([Buffer.from([type]), vector(2, Buffer.from(name, 'latin1'))]),
  );
  return vector(2, Buffer.concat(entries));
}

/** The body of a ClientHello of TLS 1.3. */
export function helloBody({ serverNames, extensions = [], sessionId = Buffer.alloc(32) }: HelloParts = {}): Buffer {
  const all = [
    ...(serverNames === undefined ? [] : [extension(0, serverNameList(serverNames))]),
    ...extensions.map(([type, content]) => extension(type, content)),
  ];
  return Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector(1, sessionId),
    vector(2, Buffer.from([0x13, 0x01, 0x13, 0x02])),
    vector(1, Buffer.from([0])),
    vector(2, Buffer.concat(all)),
  ]);
}

export function handshake(body: Buffer, type = 1): Buffer {
  return Buffer.concat([Buffer.from([type]), vector(3, body)]);
}

/** One record with the fragment. */
export function record(fragment: Buffer, type = 22, major = 3): Buffer {
  return Buffer.concat([Buffer.from([type, major, 1]), vector(2, fragment)]);
}

/** A ClientHello in one record that names this server. */
export function helloFor(name: string): Buffer {
  return record(handshake(helloBody({ serverNames: [[0, name]] })));
}
