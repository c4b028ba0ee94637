import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';

/** A pod's address, sent before the pod's containers start; it appears in the API server about a second later. */
export interface Announcement {
  readonly uid: string;
  readonly ip: string;
}

/** In the /run of the node's mount namespace. */
const SOCKET = '/run/network-policy.sock';
const TIMEOUT_MS = 10_000;

/** Calls `onAnnouncement` for each announcement. The sender waits until the returned promise resolves. */
export async function listen(onAnnouncement: (announcement: Announcement) => Promise<void>): Promise<void> {
  await rm(SOCKET, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => void handleConnection(socket, onAnnouncement));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(SOCKET, resolve));
}

async function handleConnection(
  socket: Socket,
  onAnnouncement: (announcement: Announcement) => Promise<void>,
): Promise<void> {
  try {
    await onAnnouncement(JSON.parse(await textOf(socket)) as Announcement);
    socket.end('enforced');
  } catch (error) {
    process.stderr.write(`announcement: ${String(error)}\n`);
    socket.destroy();
  }
}

/** Resolves when the policies are enforced for the address. Throws after a timeout. */
export async function announce(announcement: Announcement): Promise<void> {
  const socket = createConnection(SOCKET);
  socket.setTimeout(TIMEOUT_MS, () =>
    socket.destroy(new Error(`the network policies were not enforced within ${TIMEOUT_MS / 1_000} s`)),
  );
  socket.end(JSON.stringify(announcement));
  const text = await textOf(socket);
  if (text !== 'enforced') throw new Error('the network policies could not be enforced');
}

async function textOf(socket: Socket): Promise<string> {
  let text = '';
  // Without this option, reading to the end destroys the socket before the response is written.
  const chunks = socket.setEncoding('utf8').iterator({ destroyOnReturn: false });
  for await (const chunk of chunks) text += String(chunk);
  return text;
}
