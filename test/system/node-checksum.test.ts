import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { compareWithRelease } from '../../sandbox-image/node-checksum.ts';

const NAME = 'node-v1.2.3-linux-x64';

describe('the check of the Node binary before it is staged', () => {
  let folder: string;
  let archive: Buffer;
  const binary = (file: string) => ({ path: join(folder, file), version: '1.2.3', arch: 'x64' });
  /** A release with these checksums; the URLs are those of nodejs.org. */
  const release = (sums: string, status = 200) => {
    const fetch = async (url: string) => {
      const file = url.replace('https://nodejs.org/dist/v1.2.3/', '');
      const body = file === 'SHASUMS256.txt' ? sums : file === `${NAME}.tar.gz` ? new Uint8Array(archive) : undefined;
      return body === undefined ? new Response('', { status: 404 }) : new Response(body, { status });
    };
    return { fetch: fetch as unknown as typeof globalThis.fetch };
  };
  const sumsOf = (bytes: Buffer) =>
    `${'0'.repeat(64)}  ${NAME}.tar.xz\n${createHash('sha256').update(bytes).digest('hex')}  ${NAME}.tar.gz\n`;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-checksum-'));
    await mkdir(join(folder, NAME, 'bin'), { recursive: true });
    await writeFile(join(folder, NAME, 'bin/node'), 'the released binary');
    execFileSync('tar', ['-czf', join(folder, 'archive'), '-C', folder, NAME]);
    archive = await readFile(join(folder, 'archive'));
    await writeFile(join(folder, 'same'), 'the released binary');
    await writeFile(join(folder, 'other'), 'the released binarY');
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('a binary that equals the released one passes', async () => {
    assert.equal(await compareWithRelease(binary('same'), release(sumsOf(archive))), 'equal');
  });

  it('a binary that differs from the released one stops the staging', async () => {
    await assert.rejects(
      compareWithRelease(binary('other'), release(sumsOf(archive))),
      /is not bin\/node of .*ship nothing/,
    );
  });

  it('an archive without its digest in SHASUMS256.txt stops the staging', async () => {
    for (const sums of [sumsOf(Buffer.from('x')), '', `short  ${NAME}.tar.gz\n`]) {
      await assert.rejects(compareWithRelease(binary('same'), release(sums)), /SHASUMS256\.txt of nodejs\.org has/);
    }
  });

  it('a version that nodejs.org does not have stops the staging', async () => {
    const unknown = { ...binary('same'), version: '9.9.9' };
    await assert.rejects(
      compareWithRelease(unknown, release(sumsOf(archive))),
      /nodejs\.org has no release node-v9\.9\.9/,
    );
  });

  it('an unreachable release is reported with its cause and compares nothing', async () => {
    assert.deepEqual(await compareWithRelease(binary('same'), release('', 503)), {
      unreachable: 'https://nodejs.org/dist/v1.2.3/SHASUMS256.txt: HTTP 503',
    });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('getaddrinfo ENOTFOUND') }));
    assert.deepEqual(await compareWithRelease(binary('same'), { fetch }), { unreachable: 'getaddrinfo ENOTFOUND' });
  });
});
