import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { join, resolve } from 'node:path';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createToolServer } from '../../src/mcp/server/tool-server.ts';
import { answerGit } from './gitops/git-http-server.ts';
import { answerWeb } from './mcp/web-handler.ts';

/** The name and the public-looking address of the server, and where its search service listens. */
export const PUBLIC_HOST = 'api.example.com';
const PUBLIC_ADDRESS = '93.184.215.14';
const SEARCH_PORT = 8081;
export const SEARCH_URL = `http://localhost:${SEARCH_PORT}/search`;
const TLS = resolve(import.meta.dirname, '../fixtures/tls');
export const CERTIFICATE_FILE = join(TLS, 'certificate.pem');

const IS_ROOT = process.getuid?.() === 0;
const ISOLATED = ['-n', '-m', ...(IS_ROOT ? [] : ['--map-root-user'])];
const JOINED = ['-n', '-m', ...(IS_ROOT ? [] : ['-U', '--preserve-credentials'])];

/** Whether this machine permits a network namespace with an address of its own. */
export function canHavePublicServer(): boolean {
  return spawnSync('unshare', [...ISOLATED, 'ip', 'link', 'set', 'lo', 'up']).status === 0;
}

/** A server at a public-looking address, in a network namespace of its own: no rule about addresses is loosened for it. */
export interface PublicServer extends AsyncDisposable {
  /** A command line that runs in its namespace. */
  inside(command: readonly string[]): string[];
}

/** Starts it with a page, a search service that finds the page, an MCP server at `/mcp`, and the bare repository as `https://api.example.com/tools.git`. */
export async function startPublicServer(folder: string, repository: string): Promise<PublicServer> {
  const hosts = join(folder, 'hosts');
  await writeFile(hosts, `127.0.0.1 localhost\n${PUBLIC_ADDRESS} ${PUBLIC_HOST}\n`);
  const setup = `mount --bind "$0" /etc/hosts && ip link set lo up && ip addr add ${PUBLIC_ADDRESS}/32 dev lo && exec "$@"`;
  const program = [process.execPath, import.meta.filename, repository];
  const child = spawn('unshare', [...ISOLATED, 'sh', '-c', setup, hosts, ...program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await ready(child);
  return {
    inside: (command) => ['nsenter', '-t', String(child.pid), ...JOINED, '--wd=.', ...command],
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function ready(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit').then(() => {
    throw new Error('the server did not start');
  });
  const lines = createInterface({ input: child.stdout! });
  await Promise.race([once(lines, 'line'), ended]);
  ended.catch(() => undefined);
}

const PAGE = '<title>Weights of anvils</title><p>An anvil weighs 100 kg.</p>';

/** An MCP server with one tool. */
const weights = createToolServer({
  list: async () => [
    {
      name: 'weigh',
      description: 'The weight of a thing.',
      inputSchema: { type: 'object', properties: { thing: { type: 'string' } }, required: ['thing'] },
      category: 'other',
      action: 'code:read',
      sideEffects: false,
      locality: 'Local',
    },
  ],
  call: async (_name, { thing }) => ({
    text: typeof thing === 'string' ? `The ${thing} weighs 100 kg.` : 'Nothing is weighed.',
    isError: false,
  }),
});

/** The servers inside of the namespace. */
async function serve(repository: string): Promise<void> {
  const files = { cert: readFileSync(CERTIFICATE_FILE), key: readFileSync(join(TLS, 'key.pem')) };
  const site = createHttps(files, (request, response) => {
    if (request.url?.startsWith('/tools.git/') === true)
      return void answerGit({ repository, prefix: '/tools.git' }, request, response).catch(() => response.destroy());
    if (request.url === '/mcp') return void answerWeb(request, response, weights).catch(() => response.destroy());
    response.setHeader('content-type', 'text/html').end(PAGE);
  });
  const search = createHttp((_request, response) => {
    const result = { title: 'Weights', url: `https://${PUBLIC_HOST}/anvils.html`, content: 'How heavy anvils are.' };
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ results: [result] }));
  });
  for (const [server, port, host] of [
    [site, 443, PUBLIC_ADDRESS],
    [search, SEARCH_PORT, '127.0.0.1'],
  ] as const)
    await new Promise<void>((done) => server.listen(port, host, done));
  // When the test ends without disposing, this process ends too.
  process.stdin.on('end', () => process.exit()).resume();
  process.stdout.write('ready\n');
}

if (import.meta.main) await serve(process.argv[2] ?? '');
