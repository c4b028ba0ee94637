import { spawn } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** Answers a request below the path `prefix` for a bare repository, with `git http-backend`. */
export async function answerGit(
  { repository, prefix, user }: { repository: string; prefix: string; user?: string | undefined },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, search } = new URL(request.url ?? '', 'http://localhost');
  if (!pathname.startsWith(`${prefix}/`)) return void response.writeHead(404).end();
  const body = await buffer(request);
  const environment = {
    PATH: process.env['PATH'],
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_HTTP_EXPORT_ALL: '1',
    GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    REQUEST_METHOD: request.method,
    PATH_TRANSLATED: `${repository}${pathname.slice(prefix.length)}`,
    QUERY_STRING: search.slice(1),
    CONTENT_TYPE: request.headers['content-type'] ?? '',
    CONTENT_LENGTH: String(body.length),
    REMOTE_ADDR: '127.0.0.1',
    ...(user === undefined ? {} : { REMOTE_USER: user }),
  };
  const child = spawn('git', ['http-backend'], { env: environment, stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end(body);
  const output = await buffer(child.stdout);
  const end = output.indexOf('\r\n\r\n');
  const headers = output.toString('latin1', 0, Math.max(0, end)).split('\r\n').map(headerOf);
  const status = headers.find(([name]) => name === 'status')?.[1] ?? '200';
  response.writeHead(
    Number.parseInt(status, 10),
    Object.fromEntries(headers.filter(([name]) => name !== 'status' && name !== '')),
  );
  response.end(output.subarray(end + 4));
}

function headerOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, Math.max(0, colon)).toLowerCase(), line.slice(colon + 1).trim()];
}
