// Runs in a pod: echoes on three ports, and serves a control API on a fourth that reports which targets it can reach.
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';

const ECHO_PORTS = [8080, 8081, 8082];
const CONTROL_PORT = 9000;
/** A dropped packet gets no response, so this is the time after which a target counts as unreachable. */
const CONNECT_TIMEOUT_MS = 600;

/** Open connections, by target. */
const connections = new Map<string, Socket>();

async function open(target: string): Promise<Socket> {
  const [host = '', port = ''] = target.split(':');
  const socket = connect(Number(port), host);
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('no response')));
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

/** Whether the target is reachable within two seconds after the start of the pod. */
async function reachedEarly(target: string): Promise<boolean> {
  const end = performance.now() + 2000;
  while (performance.now() < end) {
    if (await reaches(target)) return true;
  }
  return false;
}

const first = process.argv[2] === undefined ? undefined : reachedEarly(process.argv[2]);

const ANSWERS: Record<string, (targets: string[]) => Promise<unknown>> = {
  '/ready': async () => true,
  '/probe': async (targets) => Object.fromEntries(await Promise.all(targets.map(async (t) => [t, await reaches(t)]))),
  '/open': async ([target = '']) => {
    const socket = await open(target);
    socket.setTimeout(0);
    connections.set(target, socket);
    return echoes(socket);
  },
  '/echo': async ([target = '']) => echoes(connections.get(target)),
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
