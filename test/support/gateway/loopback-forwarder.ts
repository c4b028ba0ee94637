import { once } from 'node:events';
import { createServer } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

export interface LoopbackForwarder extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
}

/** Gives an HTTPS server of this machine an HTTP endpoint: each request goes on as it came, with these headers added. */
export async function forwardTo(port: number, added: Readonly<Record<string, string>>): Promise<LoopbackForwarder> {
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const target = { host: '127.0.0.1', port, method, path: url, headers: { ...headers, ...added } };
    const sent = request({ ...target, rejectUnauthorized: false }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      pipeline(response, outgoing).catch(() => outgoing.destroy());
    });
    // A side that leaves ends the other one.
    sent.on('error', () => outgoing.destroy());
    outgoing.on('close', () => sent.destroy());
    pipeline(incoming, sent).catch(() => sent.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
