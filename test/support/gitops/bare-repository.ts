import { spawn, execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { GitTransport } from '../../../src/git/transport.ts';

/** Nothing of the machine's configuration, and no prompt. */
const ENV = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_PROTOCOL: 'version=2',
  GIT_AUTHOR_NAME: 'user',
  GIT_AUTHOR_EMAIL: 'user@example.com',
  GIT_COMMITTER_NAME: 'user',
  GIT_COMMITTER_EMAIL: 'user@example.com',
};

/** A bare repository on disk with the real programs of Git: what a server over smart HTTP runs for each request. */
export class BareRepository implements AsyncDisposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** With one commit on `main`, unless `files` is undefined. */
  static async create(files: Record<string, string> | undefined, ...flags: string[]): Promise<BareRepository> {
    const repository = new BareRepository(await mkdtemp(join(tmpdir(), 'temper-git-')));
    await repository.git('init', '-q', '--bare', '--initial-branch=main', ...flags);
    if (files !== undefined) await repository.commit('main', files);
    return repository;
  }

  async git(...args: string[]): Promise<string> {
    return (await promisify(execFile)('git', args, { cwd: this.folder, env: ENV })).stdout.trim();
  }

  /** Adds one commit with these files to the branch, as another user would. */
  async commit(branch: string, files: Record<string, string>): Promise<void> {
    const ref = `refs/heads/${branch}`;
    const before = await this.git('rev-parse', '-q', '--verify', ref).catch(() => '');
    const parent = before === '' ? [] : [`from ${before}`];
    const changes = Object.entries(files).map(
      ([path, text]) => `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}`,
    );
    const who = 'committer user <user@example.com> 1700000000 +0000';
    await this.run(
      ['fast-import', '--quiet'],
      [`commit ${ref}`, who, 'data 4', 'test', ...parent, ...changes, ''].join('\n'),
    );
  }

  /** The program `hooks/NAME` of the repository. */
  async hook(name: string, script: string): Promise<void> {
    const path = join(this.folder, 'hooks', name);
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
  }

  /** Answers as the HTTP backend of Git does. */
  readonly transport: GitTransport = async ({ path, body }) => {
    const service = (/git-(?:upload|receive)-pack$/.exec(path)?.[0] ?? '') as string;
    const flags = body === undefined ? ['--http-backend-info-refs'] : [];
    const bytes = await this.run([service.replace('git-', ''), '--stateless-rpc', ...flags, this.folder], body ?? '');
    return { contentType: `application/x-${service}-${body === undefined ? 'advertisement' : 'result'}`, bytes };
  };

  run(args: readonly string[], input: string | Uint8Array): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const child = spawn('git', args, { cwd: this.folder, env: ENV, stdio: ['pipe', 'pipe', 'pipe'] });
      const out: Buffer[] = [];
      const errors: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
      child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
      child.stdin.on('error', () => undefined);
      child.on('error', reject);
      child.on('close', (code) => {
        if (out.length > 0 || code === 0) resolve(Buffer.concat(out));
        else reject(new Error(`git ${args.join(' ')} exited with ${code}: ${Buffer.concat(errors).toString()}`));
      });
      child.stdin.end(input);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
