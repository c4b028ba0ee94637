import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import { pollAssertion, StopPolling } from '../support/poll.ts';
import { writePki } from './pki.ts';
import { freePorts, hasExited, logTail, type Server } from './process.ts';
import { openServerFolder } from './server-folder.ts';
import { tool } from './tools.ts';

/** A separate Gitea on loopback with TLS. Disposing kills it and removes its folder. */
export interface Gitea extends AsyncDisposable {
  /** `https://localhost:<port>` */
  readonly url: string;
  readonly port: number;
  /** The path of the CA of its certificate, PEM. */
  readonly caFile: string;
  /** The token of user `owner`, who owns the repositories. */
  readonly token: string;
  /** Calls `/api/v1` as `owner`, or with another token. Throws for a status of 400 or more. */
  call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<unknown>;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

const READY_TIMEOUT_MS = 120_000;
const OWNER = 'owner';

/**
 * Starts Gitea with SQLite and one user. Its certificate has `names` besides `localhost`. On failure it throws the tail of the log and leaves
 * no process and no file.
 */
export async function startGitea({ names = [] }: { names?: readonly string[] } = {}): Promise<Gitea> {
  const path = await tool('gitea');
  const opened = await openServerFolder('gitea');
  const { path: folder, kill } = opened;
  const { port } = await freePorts('port');
  const dispose = () => opened[Symbol.asyncDispose]();
  try {
    const config = await writeConfig(folder, port, { staticRoot: join(dirname(path), 'static'), names });
    const env = { HOME: folder, USER: userInfo().username };
    const command = (...args: string[]) =>
      promisify(execFile)(path, [...args, '--config', config], {
        cwd: folder,
        env: { PATH: process.env['PATH'], ...env },
      });
    await command('migrate');
    await command('admin', 'user', 'create', '--username', OWNER, '--random-password', '--email', 'owner@example.com');
    const scopes = ['--scopes', 'all', '--raw'];
    const { stdout } = await command('admin', 'user', 'generate-access-token', '--username', OWNER, ...scopes);
    const token = stdout.trim().split('\n').at(-1) ?? '';
    const caFile = join(folder, 'pki', 'ca.crt');
    const url = `https://localhost:${port}`;
    const call = caller(url, token, await readFile(caFile, 'utf8'));
    const start = async () => {
      await waitUntilReady(await opened.start({ name: 'gitea', path, flags: ['web', '--config', config], env }), call);
    };
    await start();
    return { url, port, caFile, token, call, kill, restart: start, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    const log = await opened.logTail();
    await dispose();
    throw new Error(`gitea did not start: ${String(error)}\n${log}`, { cause: error });
  }
}

async function writeConfig(
  folder: string,
  port: number,
  { staticRoot, names }: { staticRoot: string; names: readonly string[] },
): Promise<string> {
  const pki = join(folder, 'pki');
  await mkdir(pki);
  const alternativeNames = ['IP:127.0.0.1', ...['localhost', ...names].map((name) => `DNS:${name}`)].join();
  await writePki(pki, [{ name: 'gitea', subject: '/CN=gitea', alternativeNames }]);
  const config = join(folder, 'app.ini');
  await writeFile(
    config,
    `RUN_USER = ${userInfo().username}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = ${folder}
[server]
PROTOCOL = https
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = https://localhost:${port}/
CERT_FILE = ${join(pki, 'gitea.crt')}
KEY_FILE = ${join(pki, 'gitea.key')}
STATIC_ROOT_PATH = ${staticRoot}
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = ${join(folder, 'gitea.db')}
[security]
INSTALL_LOCK = true
SECRET_KEY = temper-test
[oauth2]
ENABLED = false
JWT_SECRET = c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA
[cron]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
LEVEL = Warn
[repository]
DEFAULT_BRANCH = main
`,
    { mode: 0o600 },
  );
  return config;
}

function caller(url: string, token: string, ca: string): Gitea['call'] {
  return async (method, path, body) => {
    const dispatcher = new Agent({ connect: { ca } });
    try {
      const response = await request(`${url}/api/v1${path}`, {
        method,
        dispatcher,
        headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.body.text();
      if (response.statusCode >= 400) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
      const isJson = String(response.headers['content-type']).includes('json') && text !== '';
      return isJson ? (JSON.parse(text) as unknown) : text;
    } finally {
      await dispatcher.destroy();
    }
  };
}

async function waitUntilReady(server: Server, call: Gitea['call']): Promise<void> {
  await pollAssertion(
    'gitea to answer',
    async () => {
      if (hasExited(server)) throw new StopPolling(`gitea exited: ${await logTail(server)}`);
      await call('GET', '/version');
    },
    { timeoutMs: READY_TIMEOUT_MS },
  );
}
