import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';

interface Message {
  id?: number | string;
  method?: string;
}

export interface HttpBridge extends AsyncDisposable {
  readonly url: string;
}

/** Gives a process that speaks JSON-RPC over lines an HTTP endpoint: each request is one line, and its answer the body of the response. */
export async function bridgeTo(child: ChildProcess): Promise<HttpBridge> {
  const waiting = new Map<number, (answer: Message) => void>();
  let count = 0;
  if (child.stdout === null || child.stdin === null) throw new Error('the process has no pipes');
  const { stdin } = child;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line) as Message;
    if (message.method === undefined && typeof message.id === 'number') waiting.get(message.id)?.(message);
  });
  // Clients that are connected at the same time use the same ids.
  const ask = async (request: Message): Promise<Message> => {
    const id = ++count;
    const { promise, resolve } = Promise.withResolvers<Message>();
    waiting.set(id, resolve);
    stdin.write(`${JSON.stringify({ ...request, id })}\n`);
    const answer = await promise;
    waiting.delete(id);
    return request.id === undefined ? answer : { ...answer, id: request.id };
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      if (request.method !== 'POST') return void response.writeHead(405).end();
      const message = (await json(request)) as Message;
      if (message.id !== undefined) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(await ask(message)));
        return;
      }
      stdin.write(`${JSON.stringify(message)}\n`);
      response.writeHead(202).end();
    };
    answer().catch(() => response.writeHead(400).end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
