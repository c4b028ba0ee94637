/**
 * The program behind the addresses: a name server, a web server, a Git server, and ports that no agent may reach. Arguments: the address
 * of the name server, the file for its lines, the files of certificate and key, the folders of the two bare repositories, and that of
 * the MCP servers from PyPI.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createWebServer } from 'node:https';
import { createServer } from 'node:net';
import { namesInside } from '../../../support/egress/inside-addresses.ts';
import { startNameServer } from '../../../support/name-server.ts';
import { peerHandler } from '../../../support/a2a-peer.ts';
import { answerGit } from '../../../../manifests/local/shared/git-backend.ts';
import {
  API_HOST,
  ARCHIVE_HOST,
  GIT_HOST,
  type InternetLine,
  MCP_HOST,
  METADATA_ADDRESS,
  OTHER_PORTS,
  PUBLIC_ADDRESS,
  REBINDING_HOST,
  REPOSITORY_TOKEN,
  SEARCH_HOST,
  SERVICE_TOKEN,
} from './addresses.ts';
import { mcpHost } from './mcp-host.ts';
import { PullRequestApi } from './pull-request-api.ts';

const DRIP_MS = 100;
const [nameServer = '', lines = '', certificate = '', key = '', open = '', closed = '', python = ''] =
  process.argv.slice(2);
const names: Readonly<Record<string, readonly string[]>> = {
  ...namesInside('example.com', PUBLIC_ADDRESS),
  ...Object.fromEntries(
    ['api', 'archive', 'git', 'mcp', 'search', 'status', 'moved', 'xn--bcher-kva'].map((name) => [
      `${name}.example.com`,
      [PUBLIC_ADDRESS],
    ]),
  ),
};
let turns = 0;

function write(line: InternetLine): void {
  appendFileSync(lines, `${JSON.stringify(line)}\n`);
}

await startNameServer({
  at: { host: nameServer, port: 53 },
  addressesOf(name, family) {
    write({ event: 'query', name });
    if (name !== REBINDING_HOST) return names[name];
    if (family === 6) return [];
    turns += 1;
    return [turns % 2 === 1 ? PUBLIC_ADDRESS : METADATA_ADDRESS];
  },
});

const AUTHORIZATION = `Basic ${Buffer.from(`git:${REPOSITORY_TOKEN}`).toString('base64')}`;

const pullRequests = new PullRequestApi();
const answerPeer = peerHandler();
const answerMcp = await mcpHost(python);

function answerJson(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

async function answerArchive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.headers.authorization === `Bearer ${SERVICE_TOKEN}`) return answerPeer(request, response);
  response.writeHead(401).end();
}

function answerRates(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
  if (request.headers['x-api-key'] !== SERVICE_TOKEN) response.writeHead(401).end();
  else answerJson(response, { from: query.get('from'), to: query.get('to'), rate: 1.25 });
}

async function answerRepository(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url?.startsWith('/api/') === true) return pullRequests.answer(request, response);
  if (request.url?.startsWith('/private.git/') !== true)
    return answerGit({ repository: open, prefix: '/tools.git' }, request, response);
  if (request.headers.authorization === AUTHORIZATION)
    return answerGit({ repository: closed, prefix: '/private.git', user: 'git' }, request, response);
  response.writeHead(401).end();
}

createWebServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
  const { headers, url = '' } = request;
  write({ event: 'request', host: headers.host ?? '', path: url });
  if (headers.host === GIT_HOST || headers.host === ARCHIVE_HOST) {
    const answered = headers.host === GIT_HOST ? answerRepository(request, response) : answerArchive(request, response);
    answered.catch(() => response.destroy());
    return;
  }
  if (headers.host === MCP_HOST) {
    answerMcp(request, response);
    return;
  }
  const { pathname, search, searchParams } = new URL(url, 'https://example.com');
  if (headers.host === API_HOST && pathname === '/v1/rates') {
    answerRates(request, response, searchParams);
    return;
  }
  if (headers.host === SEARCH_HOST) {
    const query = searchParams.get('q') ?? '';
    answerJson(response, {
      results: [{ title: `About ${query}`, url: `https://${API_HOST}/page`, content: 'A page.' }],
    });
    return;
  }
  // A client of Git adds to the path, and replaces the query.
  const [, first, target] = pathname.split('/');
  if (first === 'moved') {
    response.writeHead(302, { location: decodeURIComponent(target ?? search.slice(1)) }).end();
    return;
  }
  if (pathname !== '/drip') {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('ok');
    return;
  }
  const dripping = setInterval(() => response.write('.'), DRIP_MS);
  response.once('close', () => {
    clearInterval(dripping);
    write({ event: 'closed', path: url });
  });
}).listen(443, PUBLIC_ADDRESS);

for (const [address, port] of OTHER_PORTS) {
  createServer((socket) => {
    write({ event: 'connection', address, port });
    socket.on('error', () => undefined).end();
  }).listen(port, address);
}
