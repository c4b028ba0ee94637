import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Metadata } from './types.ts';

interface Item {
  readonly metadata: Metadata;
  readonly spec?: unknown;
  readonly status?: { readonly phase?: string; readonly podIP?: string };
}

export interface Server {
  /** `https://<address>:<port>` */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Keeps what the rules need of all objects of a collection in a map by uid, and calls `onChange` after each change of that. Runs until the
 * signal aborts. When a watch ends for any reason, it lists again, so that no change is missed.
 */
export async function watch<T extends Item>(
  server: Server,
  path: string,
  objects: Map<string, T>,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  const agent = new Agent({ ca: server.ca, cert: server.cert, key: server.key, keepAlive: true });
  signal.addEventListener('abort', () => agent.destroy());
  while (!signal.aborted) {
    try {
      const version = await list(agent, server, path, objects);
      onChange();
      await follow(agent, server, `${path}?watch=true&resourceVersion=${version}`, objects, onChange);
    } catch (error) {
      if (signal.aborted) return;
      process.stderr.write(`${path}: ${String(error)}\n`);
      await sleep(200);
    }
  }
}

async function list<T extends Item>(agent: Agent, server: Server, path: string, objects: Map<string, T>) {
  let text = '';
  for await (const chunk of await get(agent, server, path)) text += chunk;
  const { items, metadata } = JSON.parse(text) as { items: T[]; metadata: { resourceVersion: string } };
  objects.clear();
  for (const item of items) objects.set(item.metadata.uid, neededOf(item));
  return metadata.resourceVersion;
}

async function follow<T extends Item>(
  agent: Agent,
  server: Server,
  path: string,
  objects: Map<string, T>,
  onChange: () => void,
): Promise<void> {
  let rest = '';
  for await (const chunk of await get(agent, server, path)) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    let isChanged = false;
    for (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: T };
      // The resourceVersion has expired; list again.
      if (type === 'ERROR') return;
      isChanged = record(objects, type, object) || isChanged;
    }
    if (isChanged) onChange();
  }
}

/** Whether the event changes what the rules need: most events of a pod change only its conditions. */
function record<T extends Item>(objects: Map<string, T>, type: string, object: T): boolean {
  const { uid } = object.metadata;
  if (type === 'DELETED') return objects.delete(uid);
  const needed = neededOf(object);
  if (isDeepStrictEqual(needed, objects.get(uid))) return false;
  objects.set(uid, needed);
  return true;
}

function neededOf<T extends Item>({ metadata: { name, namespace, uid, labels }, spec, status }: T): T {
  const { phase, podIP } = status ?? {};
  return { metadata: { name, namespace, uid, labels }, spec, status: { phase, podIP } } as T;
}

/** The response body as text chunks. `readline` is not used because it loses lines that arrive before the iteration starts. */
function get(agent: Agent, { url }: Server, path: string): Promise<AsyncIterable<string>> {
  return new Promise((resolve, reject) => {
    const answered = (response: IncomingMessage) => {
      if (response.statusCode === 200) resolve(response.setEncoding('utf8') as AsyncIterable<string>);
      else {
        response.resume();
        reject(new Error(`HTTP ${response.statusCode}`));
      }
    };
    const call = request(new URL(path, url), { agent, headers: { accept: 'application/json' } }, answered);
    call.on('error', reject);
    call.end();
  });
}
