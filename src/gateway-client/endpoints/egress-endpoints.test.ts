import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { EgressEndpoints } from './egress-endpoints.ts';

const CERTIFICATE = new URL('../../../test/fixtures/tls/certificate.pem', import.meta.url);

describe('the files about the egress proxy', () => {
  let folder = '';
  let files: EgressEndpoints;
  const clock = new FakeClock();
  /** What the files say now. */
  const reread = async () => {
    await clock.advance(1_000);
    return files.current();
  };
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-egress-files-'));
    await Promise.all([
      write('egress', 'https://10.0.0.7:8445\n'),
      write('egress-name', 'temper-egress'),
      write('ca.crt', 'CA'),
      write('token', 'token-1'),
    ]);
    const tokenFile = join(folder, 'token');
    files = new EgressEndpoints({ folder, tokenFile, clock });
  });
  after(() => rm(folder, { recursive: true }));

  it('without authorities for targets, those of the system count', async () => {
    const { connect: _, ...endpoint } = await reread();
    assert.deepEqual(endpoint, { origin: 'https://10.0.0.7:8445', token: 'token-1' });
  });

  it('authorities for targets are read into one context until they change', async () => {
    const certificate = await readFile(CERTIFICATE, 'utf8');
    await write('egress-ca.crt', certificate);
    const { targetTrust: first } = await reread();
    await write('token', 'token-2');
    const { targetTrust: second, token } = await reread();
    assert.ok(first !== undefined);
    assert.deepEqual([first === second, token], [true, 'token-2']);
    await write('egress-ca.crt', `${certificate}\n${certificate}`);
    assert.notEqual((await reread()).targetTrust, first);
  });

  it('a connector is kept, with its session of TLS, until the proxy or its authority changes', async () => {
    const { connect: first } = await reread();
    await write('token', 'token-3');
    assert.equal((await reread()).connect, first);
    await write('ca.crt', 'another CA');
    const { connect: second } = await reread();
    assert.notEqual(second, first);
    await write('egress', 'https://10.0.0.8:8445');
    assert.notEqual((await reread()).connect, second);
  });
});
