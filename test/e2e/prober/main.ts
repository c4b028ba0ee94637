// Runs in a pod: echoes on three ports, and tells on a fourth what it can reach itself.
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';

const ECHO_PORTS = [8080, 8081, 8082];
const CONTROL_PORT = 9000;
/** What is dropped gives no answer at all: so long one is waited for. */
const PATIENCE_MS = 600;

/** Connections that are kept, by where they lead. */
const held = new Map<string, Socket>();

async function open(target: string): Promise<Socket> {
  const [host = '', port = ''] = target.split(':');
  const socket = connect(Number(port), host);
  socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer')));
  await once(socket, 'connect');
  return socket;
}

async function reaches(target: string): Promise<boolean> {
  try {
    (await open(target)).destroy();
    return true;
  } catch {
    return false;
  }
}

async function echoes(socket: Socket | undefined): Promise<boolean> {
  if (socket === undefined || socket.destroyed) return false;
  socket.write('echo');
  try {
    await once(socket, 'data');
    return true;
  } catch {
    return false;
  }
}

/** What a pod could reach in the first moments of its life. */
async function atOnce(target: string): Promise<boolean> {
  const end = performance.now() + 2000;
  while (performance.now() < end) {
    if (await reaches(target)) return true;
  }
  return false;
}

const first = process.argv[2] === undefined ? undefined : atOnce(process.argv[2]);

const ANSWERS: Record<string, (targets: string[]) => Promise<unknown>> = {
  '/ready': async () => true,
  '/probe': async (targets) => Object.fromEntries(await Promise.all(targets.map(async (t) => [t, await reaches(t)]))),
  '/hold': async ([target = '']) => {
    const socket = await open(target);
    socket.setTimeout(0);
    held.set(target, socket);
    return echoes(socket);
  },
  '/held': async ([target = '']) => echoes(held.get(target)),
  '/first': async () => first,
  '/resolve': async ([name = '']) => (await lookup(name)).address,
};

for (const port of ECHO_PORTS) {
  createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(port);
}
createHttpServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://pod');
  const answer = ANSWERS[url.pathname];
  const send = (status: number, body: unknown) => response.writeHead(status).end(JSON.stringify({ answer: body }));
  if (answer === undefined) send(404, null);
  else
    answer(url.searchParams.getAll('target')).then(
      (body) => send(200, body),
      (error) => send(500, String(error)),
    );
}).listen(CONTROL_PORT);
process.on('SIGTERM', () => process.exit(0));
