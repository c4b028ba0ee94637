/** A client of the proxy, for tests. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';

export const CREDENTIALS = 'Proxy-Authorization: Bearer a.b.c\r\ntemper-delivery-token: d1.x.y\r\n';

export class ProxyClient {
  host = '127.0.0.1';
  port = 0;
  /** Of the hosts behind the proxy, PEM. */
  certificate = '';
  protected readonly sockets: Socket[] = [];

  /** A TLS connection to the proxy. */
  async open(): Promise<TLSSocket> {
    const socket = connectTls({ host: this.host, port: this.port, rejectUnauthorized: false });
    socket.on('error', () => undefined);
    this.sockets.push(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('close', () => reject(new Error('the proxy closed the connection')));
    });
    return socket;
  }

  /** Sends the text on a connection of its own, and returns all that arrives until the proxy closes it. */
  async exchange(sent: string): Promise<string> {
    const socket = await this.open();
    socket.write(sent);
    return text(socket).catch(() => '');
  }

  /** A socket with the established tunnel; throws with the response of a refusal. */
  async tunnel(authority: string, head = CREDENTIALS): Promise<TLSSocket> {
    const socket = await this.open();
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${head}\r\n`);
    let received = '';
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      received += String(chunk);
      if (received.endsWith('\r\n\r\n') && received.startsWith('HTTP/1.1 200')) return socket;
    }
    throw new Error(received);
  }

  /** A request over TLS through a tunnel. */
  async get(authority: string, path = '/', head = CREDENTIALS): Promise<string> {
    return text(await this.#request(authority, `GET ${path}`, { head, connection: 'close' }));
  }

  /** Closes a connection that the host keeps open, once the answer begins. */
  async getAndLeave(authority: string): Promise<string> {
    const { socket, chunk } = await this.getAndHold(authority, '/', CREDENTIALS);
    socket.destroy();
    return chunk;
  }

  /** The beginning of an answer, on a connection that stays open. */
  async getAndHold(authority: string, path: string, head: string): Promise<{ socket: TLSSocket; chunk: string }> {
    const socket = await this.#request(authority, `GET ${path}`, { head, connection: 'keep-alive' });
    const closed = new AbortController();
    socket.once('close', () => closed.abort(new Error('the connection was closed before its answer')));
    const [chunk] = (await once(socket, 'data', { signal: closed.signal })) as [Buffer];
    return { socket, chunk: String(chunk) };
  }

  async #request(
    authority: string,
    line: string,
    { head, connection }: { head: string; connection: string },
  ): Promise<TLSSocket> {
    const servername = authority.replace(/:\d+$/, '');
    const tunnel = await this.tunnel(authority, head);
    const socket = connectTls({ socket: tunnel, servername, ca: [this.certificate], rejectUnauthorized: false });
    socket.write(`${line} HTTP/1.1\r\nHost: ${servername}\r\nConnection: ${connection}\r\n\r\n`);
    return socket;
  }

  destroyAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}
