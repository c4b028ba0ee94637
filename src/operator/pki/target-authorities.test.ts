import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { certificatesIn, TargetAuthorities } from './target-authorities.ts';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);

describe('the certificate authorities of targets', () => {
  let certificate = '';
  let folder = '';

  before(async () => {
    certificate = (await readFile(new URL('certificate.pem', TLS), 'utf8')).trim();
    folder = await mkdtemp(join(tmpdir(), 'temper-authorities-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('only the certificates of a file pass on, and no key or comment', async () => {
    const key = await readFile(new URL('key.pem', TLS), 'utf8');
    const text = `# ours\n${certificate}\n${key}\n${certificate}\n`;
    assert.equal(certificatesIn(text), `${certificate}\n${certificate}\n`);
  });

  it('a text without a certificate, with a broken one, or too large is refused', () => {
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
    assert.throws(() => certificatesIn('ca'), /no certificate/);
    assert.throws(() => certificatesIn(`${certificate}\n${broken}`), /certificate 2 is broken/);
    assert.throws(() => certificatesIn(`${certificate}\n${' '.repeat(262_144)}`), /larger than/);
  });

  it('a file that becomes invalid is logged, and its last valid content stays in use', async () => {
    const file = join(folder, 'ca.crt');
    const logged: string[] = [];
    const destination = { write: (line: string) => logged.push(line) };
    const log = createLogger({ level: 'info', destination, secrets: createSecretRedactor() });
    const authorities = new TargetAuthorities(file, log);
    assert.equal(await authorities.read(), undefined);
    await writeFile(file, certificate);
    assert.equal(await authorities.read(), `${certificate}\n`);
    await writeFile(file, 'nothing');
    assert.equal(await authorities.read(), `${certificate}\n`);
    assert.equal(logged.length, 2);
    assert.match(logged[1] ?? '', /ca\.crt: .*no certificate/);
  });
});
