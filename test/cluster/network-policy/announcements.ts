import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';

/** A pod's address, told before its containers start; the API server learns of it a second later. */
export interface Announcement {
  readonly uid: string;
  readonly ip: string;
}

/** In the node's own /run. */
const SOCKET = '/run/network-policy.sock';
const PATIENCE_MS = 10_000;

/** Calls `announced` for each; what it resolves to is awaited before the teller may go on. */
export async function listen(announced: (announcement: Announcement) => Promise<void>): Promise<void> {
  await rm(SOCKET, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => void answer(socket, announced));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(SOCKET, resolve));
}

async function answer(socket: Socket, announced: (announcement: Announcement) => Promise<void>): Promise<void> {
  try {
    await announced(JSON.parse(await textOf(socket)) as Announcement);
    socket.end('enforced');
  } catch (error) {
    process.stderr.write(`announcement: ${String(error)}\n`);
    socket.destroy();
  }
}

/** Returns when the policies are enforced for the address. Throws when that is not so in time. */
export async function announce(announcement: Announcement): Promise<void> {
  const socket = createConnection(SOCKET);
  socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('the network policies were not enforced in time')));
  socket.end(JSON.stringify(announcement));
  const text = await textOf(socket);
  if (text !== 'enforced') throw new Error('the network policies could not be enforced');
}

async function textOf(socket: Socket): Promise<string> {
  let text = '';
  // The end of what is read must not end what is still to be written.
  const chunks = socket.setEncoding('utf8').iterator({ destroyOnReturn: false });
  for await (const chunk of chunks) text += String(chunk);
  return text;
}
