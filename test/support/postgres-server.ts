import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, copyFile, glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { freePorts } from '../cluster/process.ts';
import { pollValue } from './poll.ts';

const run = promisify(execFile);

export const POSTGRES_PASSWORD = 'reader-0123456789';

/** A PostgreSQL server on localhost with TLS, in a folder of its own. */
export interface PostgresServer extends AsyncDisposable {
  port: number;
  /** The certificate of the server, which is its own authority. */
  certificate: string;
  /** Runs commands as the superuser. */
  execute(sql: string, database?: string): Promise<void>;
}

/** Throws when PostgreSQL is not installed. PostgreSQL refuses to run as root, so root runs it as the user of its package. */
export async function startPostgres(): Promise<PostgresServer> {
  const bin = await binaries();
  const folder = await mkdtemp(join(tmpdir(), 'temper-postgres-'));
  const owner = process.getuid?.() === 0 ? await postgresUser() : undefined;
  const user = owner ?? {};
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  await run(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'admin', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'],
    user,
  );
  await createCertificate(data, user);
  const { port } = await freePorts('port');
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'fsync=off',
    'ssl=on',
    'password_encryption=scram-sha-256',
  ];
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
    ...user,
    stdio: 'ignore',
  });
  const ended = once(server, 'exit');
  const execute = async (sql: string, database = 'postgres'): Promise<void> => {
    const client = new Client({ host: folder, port, user: 'admin', database, password: () => '' });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  };
  await pollValue(
    'PostgreSQL',
    () =>
      execute('SELECT 1').then(
        () => true,
        () => false,
      ),
    Boolean,
  );
  return {
    port,
    certificate: await readFile(join(data, 'server.crt'), 'utf8'),
    execute,
    async [Symbol.asyncDispose]() {
      server.kill('SIGQUIT');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function binaries(): Promise<string> {
  for await (const file of glob('/usr/lib/postgresql/*/bin/initdb')) return join(file, '..');
  throw new Error('PostgreSQL is not installed');
}

async function postgresUser(): Promise<{ uid: number; gid: number }> {
  const [, uid = '', gid = ''] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(await readFile('/etc/passwd', 'utf8')) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

async function createCertificate(data: string, user: object): Promise<void> {
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', join(data, 'server.key'), '-out', join(data, 'server.crt')];
  await run(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      ...subject,
      ...files,
    ],
    user,
  );
  const access = join(data, 'pg_hba.conf');
  await copyFile(join(import.meta.dirname, '../fixtures/postgres/pg_hba.conf'), access);
}
